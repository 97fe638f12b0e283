/**
 * The first 64 bytes of memory, which threads of a session agree by: words of i32 at these byte addresses. All are 0 at
 * the start. Address 0 is none of them.
 */
export const control = {
  /** Rises with every region that is opened, and when threads are to end; who has nothing to do waits for that. */
  epoch: 4,
  /** The segment that runs. */
  job: 8,
  /** 1 while threads may join. */
  open: 12,
  /** Chunks of the segment that have been taken, and that have been done. */
  taken: 16,
  done: 20,
  /** Threads in the region besides the first. */
  joined: 24,
  /** Threads asleep until the epoch rises. */
  asleep: 28,
  /** Threads asleep until chunks are done, or others leave. */
  waiting: 32,
  /** Not 0 when a thread has failed: 1 and the length of its message. */
  failed: 36,
  /** Number of threads; 1 while the first one is to run alone. */
  threads: 40,
  /** 1 where the first thread may sleep. */
  mayWait: 44,
  /** 1 when threads are to end. */
  stop: 48,
  /** Where working memory of threads besides the first lies, and the bytes of each. */
  scratch: 52,
  scratchBytes: 56,
  /** Where the message of a thread that failed lies, and how many bytes it may take. */
  message: 60,
} as const;

export const messageBytes = 256;
