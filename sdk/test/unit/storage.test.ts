/** Every storage keeps the first value of an entry, also with concurrent writers. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { browserStore, memoryStore, type OrderStore } from "../../src/index.js";
import { folderStore } from "../../src/node.js";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fastpay-store-"));
});

afterAll(() => rm(folder, { recursive: true }));

describe.each([
  ["memory", async (): Promise<OrderStore> => memoryStore()],
  ["folder", (): Promise<OrderStore> => folderStore(join(folder, crypto.randomUUID()))],
])("%s", (_name, open) => {
  test("an entry is written once, also by many at the same time", async () => {
    const store = await open();
    const written = await Promise.all(Array.from({ length: 20 }, (_, i) => store.create("1/0xab/x.order", `${i}`)));
    expect(written.filter(Boolean)).toHaveLength(1);
    expect(await store.get("1/0xab/x.order")).toBe(`${written.indexOf(true)}`);
    expect(await store.get("1/0xab/y.order")).toBeUndefined();
  });

  test("keys are listed by prefix, in order", async () => {
    const store = await open();
    for (const key of ["b/2", "a/2", "a/10", "a/1"]) await store.create(key, "");
    expect(await store.keys("a/")).toEqual(["a/1", "a/10", "a/2"]);
  });

  test("tasks of one name run one after the other, and a long wait is an error", async () => {
    const store = await open();
    const order: string[] = [];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = store.exclusively("a", 1_000, async () => {
      order.push("first begins");
      await held;
      order.push("first ends");
    });
    await expect(store.exclusively("a", 10, async () => order.push("never"))).rejects.toMatchObject({ code: "busy" });
    const third = store.exclusively("a", 1_000, async () => order.push("third"));
    await store.exclusively("b", 10, async () => order.push("other"));
    release();
    await Promise.all([first, third]);
    expect(order).toEqual(["first begins", "other", "first ends", "third"]);
    await expect(store.exclusively("a", 10, () => Promise.reject(new Error("its own")))).rejects.toThrow("its own");
    expect(await store.exclusively("a", 10, async () => 7)).toBe(7);
  });
});

test("a folder survives its program, and files that are no entries are skipped", async () => {
  const path = join(folder, "kept");
  await (await folderStore(path)).create("a/1", "one");
  await writeFile(join(path, ".left-by-a-crash"), "half");
  const again = await folderStore(path);
  expect(await again.get("a/1")).toBe("one");
  expect(await again.keys("")).toEqual(["a/1"]);
});

test("an unusable folder is reported", async () => {
  await writeFile(join(folder, "file"), "");
  await expect(folderStore(join(folder, "file"))).rejects.toMatchObject({ code: "storage" });
});

test("without IndexedDB there is no browser storage", async () => {
  await expect(browserStore()).rejects.toMatchObject({ code: "storage" });
});
