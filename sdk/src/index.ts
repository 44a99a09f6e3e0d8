/** FastPay for TypeScript. The quick start is docs/SDK.md. */

export * from "./accounts.js";
export * from "./amounts.js";
export type { Address, Hex } from "./bytes.js";
export * from "./certificate.js";
export * from "./client.js";
export * from "./committee.js";
export * from "./eip712.js";
export * from "./errors.js";
export * from "./link.js";
export * from "./memo.js";
export * from "./merkle.js";
export * from "./progress.js";
export * from "./signatures.js";
export * from "./signers.js";
export * from "./storage/store.js";
export * from "./transfer.js";
export * from "./verify.js";
export * from "./views.js";
export { walletError } from "./wallet-errors.js";
