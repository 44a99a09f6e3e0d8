/** Entries of one deployment are never used in another one at the same address, and never lost. */

import { expect, test } from "vitest";

import { memoryStore } from "../../src/index.js";
import { rememberCommittee } from "../../src/storage/committees.js";
import { deploymentStore } from "../../src/storage/deployments.js";
import { rememberEndpoint } from "../../src/storage/endpoints.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { ListJournal } from "../../src/storage/lists.js";
import { TransactionJournal } from "../../src/storage/transactions.js";
import { authorities, committeeOfKeys, DOMAIN, paymentOf, person, signed } from "../support/committee.js";

const [first, second, third] = ["a", "b", "c"].map((seed) => committeeOfKeys(authorities(4, seed)));
if (first === undefined || second === undefined || third === undefined) throw new Error("there are no committees");
const [alice, bob] = [person("alice"), person("bob")];

test("each deployment has its own entries; another one is refused until the old ones are set aside, and finds them again later", async () => {
  const store = memoryStore();
  const order = await signed(alice, paymentOf(alice.account, bob.account, 7n, 0n));
  const journal = async (committee: typeof first, setAside = false) =>
    new OrderJournal(await deploymentStore(store, DOMAIN, committee as never, setAside), DOMAIN, alice.account);
  // What stood there before deployments were told apart is of the one that is met first.
  await new OrderJournal(store, DOMAIN, alice.account).create(order);
  expect(await (await journal(first)).nextSequence()).toBe(1n);
  await expect(journal(second)).rejects.toMatchObject({ code: "other-deployment" });
  // Refused again: nothing was noted by asking.
  await expect(journal(second)).rejects.toMatchObject({ code: "other-deployment" });
  const other = await journal(second, true);
  expect(await other.entries()).toEqual([]);
  const theirs = await signed(alice, paymentOf(alice.account, bob.account, 9n, 0n));
  await other.create(theirs);
  expect((await (await journal(second)).entry(0n))?.order?.transfer).toMatchObject({ amount: 9n });
  expect((await (await journal(first)).entry(0n))?.order?.transfer).toMatchObject({ amount: 7n });
  await expect(journal(third)).rejects.toMatchObject({ code: "other-deployment" });
  expect(await (await journal(third, true)).entries()).toEqual([]);
  expect(await (await journal(second)).nextSequence()).toBe(1n);
});

test("another contract or chain is told apart automatically", async () => {
  const store = memoryStore();
  await deploymentStore(store, DOMAIN, first, false);
  await deploymentStore(store, { ...DOMAIN, chainId: 1n }, second, false);
  await expect(deploymentStore(store, { ...DOMAIN, chainId: 1n }, first, false)).rejects.toMatchObject({ code: "other-deployment" });
});

test("two pages that set entries aside at once for different deployments each keep their own", async () => {
  const store = memoryStore();
  await deploymentStore(store, DOMAIN, first, false);
  const [one, other] = await Promise.all([second, third].map((committee) => deploymentStore(store, DOMAIN, committee, true)));
  await one?.create("key", "one");
  await other?.create("key", "other");
  expect([await one?.get("key"), await other?.get("key"), await store.get("key")]).toEqual(["one", "other", undefined]);
  expect(await one?.keys("k")).toEqual(["key"]);
});

test("the keys of entries never change: earlier versions have stored under them", async () => {
  const store = memoryStore();
  const hash = `0x${"11".repeat(32)}` as const;
  const domain = { chainId: 31_337n, contract: `0x${"FA".repeat(20)}` } as const;
  await deploymentStore(store, domain, first, false);
  await rememberCommittee(store, domain, first);
  const endpoint = { authority: hash, number: 3n, shards: [], http: undefined, tlsCa: undefined, signature: hash };
  await rememberEndpoint(store, domain, endpoint);
  await new ListJournal(store, domain).close(hash);
  await new OrderJournal(store, domain, alice.account).create(await signed(alice, paymentOf(alice.account, bob.account, 7n, 0n)));
  await new TransactionJournal(store, domain, alice.account).end({ type: "deposit", hash });
  const names = [
    "deployments/0",
    "committees/0",
    `endpoints/${hash}/3`,
    `lists/${hash}.closed`,
    `${alice.account}/00000000000000000000.order`,
    `${alice.account}/deposit-${hash}.ended`,
  ];
  expect(await store.keys("")).toEqual(names.map((name) => `31337/0x${"fa".repeat(20)}/${name}`).sort());
});
