import { describe, expect, it } from "vitest";
import { proveRules } from "../verify/prove-rule.ts";
import { providers } from "./kernels.ts";
import { onnxruntimeRules } from "./onnxruntime.ts";
import { unsqueezeMask } from "./unsqueeze-mask.ts";

describe.each(providers)("rules for onnxruntime on %s", (provider) => {
  it.each(onnxruntimeRules(provider).filter((r) => provider === "cpu" || !["fuse-gemm-activation", "fuse-matmul-transpose"].includes(r.name)).map((r) => [r.name, r] as const))("%s fires on its examples, stays equal, and refuses where it says", (_, rule) => {
    expect(proveRules([rule]).map((p) => `${p.outcome} ${p.reason ?? ""}`)).toEqual(["proved "]);
  });
});

it("the rule for masks fires on its example, stays equal, and refuses where it says", () => {
  expect(proveRules([unsqueezeMask]).map((p) => `${p.outcome} ${p.reason ?? ""}`)).toEqual(["proved "]);
});

it("a rule that is wrong is seen", () => {
  const rule = onnxruntimeRules("cpu").find((r) => r.name === "fuse-quick-gelu");
  if (!rule) return expect.fail("no rule");
  const wrong = { ...rule, rewrite: (match: object, edit: Parameters<typeof rule.rewrite>[1]) => rule.rewrite({ ...match, swish: { attributes: { alpha: 3 } } }, edit) };
  expect(proveRules([wrong])[0]?.outcome).toBe("wrong");
});

it("webgpu has no FusedGemm and no FusedMatMul", () => {
  for (const rule of onnxruntimeRules("webgpu").filter((r) => ["fuse-gemm-activation", "fuse-matmul-transpose"].includes(r.name))) expect(proveRules([rule])[0]?.reason).toMatch(/no-kernel/);
});
