/**
 * What a thread besides the first runs, as text: it must start from a Blob, from a string in Node, or from a file of its
 * own (`dist/runtime/worker.js`) where a page allows no others. It instantiates the code on the shared memory and takes
 * part until told to end; when the code traps, it leaves word of it and is ready for the next run.
 */
import { control, messageBytes } from "../memory/control.ts";

const word = (address: number): number => address / 4;

const serve = `
const serve = ({ module, memory, thread }) => {
  const { work } = new WebAssembly.Instance(module, { env: { memory } }).exports;
  for (;;) {
    try { work(thread); return; } catch (e) {
      const words = new Int32Array(memory.buffer, 0, 16);
      const text = new TextEncoder().encode(String((e && e.message) || e)).slice(0, ${messageBytes});
      new Uint8Array(memory.buffer, Atomics.load(words, ${word(control.message)}), ${messageBytes}).set(text);
      Atomics.store(words, ${word(control.failed)}, 1 + text.length);
      Atomics.sub(words, ${word(control.joined)}, 1);
      for (const at of [${word(control.joined)}, ${word(control.done)}]) Atomics.notify(words, at);
    }
  }
};`;

/** For browsers: waits for what to serve. */
export const browserThread = `${serve}\nonmessage = ({ data }) => serve(data);\n`;
/** For Node: is given it. */
export const nodeThread = `${serve}\nserve(require("node:worker_threads").workerData);\n`;
