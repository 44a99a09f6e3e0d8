/** What the page remembers of work under way, without a page. */

import { expect, test } from "@playwright/test";
import { ZERO_ACCOUNT, type DelayStep, type Transfer } from "@fastpay/sdk";

import { Activities, submittedIn, type Activity, type ActivityControl, type ActivityKind, type ActivityProgress } from "../src/activity/activities";
import { chainSteps, hindrances, ownSteps, transferSteps } from "../src/activity/steps";

const ACCOUNT = ZERO_ACCOUNT;
const HASH = `0x${"22".repeat(32)}` as const;
const TRANSFER = { type: "payment", sender: ACCOUNT, recipient: ACCOUNT, sequence: 0n } as Transfer;
/** Of a committee of seven. */
const AUTHORITIES = [...Array(7).keys()].map((number) => ({ url: `https://authority-${number}.example`, name: undefined }));

/** Work whose steps are told by the test, and how it stands. */
function work(kind: ActivityKind): ActivityControl & { readonly now: () => Activity } {
  const store = new Activities();
  let control: ActivityControl | undefined;
  const doWork = (given: ActivityControl): Promise<void> => {
    control = given;
    return new Promise(() => undefined);
  };
  store.start({ kind, account: ACCOUNT, title: "Work", work: doWork }, () => undefined);
  if (control === undefined) throw new Error("the work was not begun");
  return { ...control, now: () => store.list()[0] as Activity };
}

/** What is told while the network is away for half a minute: each authority is asked again and again. */
function* lost(): Generator<ActivityProgress> {
  for (let round = 0; round < 60; round += 1) {
    for (const authority of AUTHORITIES) {
      const delays: DelayStep[] = [
        { type: "catching-up", authority, account: ACCOUNT, sequence: BigInt(round) },
        { type: "waiting", authority, failure: { kind: "silent", message: `for the ${round}th time` } },
      ];
      for (const delay of delays) yield { ...delay, afterMs: round };
    }
  }
}

test("any number of waiting steps keeps the signed and certified steps of an order", () => {
  const { report, now } = work("pay");
  report({ type: "signing", transfer: TRANSFER, afterMs: 0 });
  report({ type: "ordered", transfer: TRANSFER, digest: HASH, resumed: false, afterMs: 0 });
  for (const step of lost()) report(step);
  expect(now().steps.map(({ type }) => type)).toContain("ordered");
  expect(ownSteps(now())[0]?.type).toBe("ordered");
  expect(transferSteps(now(), "Ethereum")[0]?.state).toBe("done");

  // Each authority's newest word, in one order whoever spoke last; who votes is no hindrance any more.
  const silent = AUTHORITIES.map(({ url }) => `${url} does not answer yet`);
  expect(hindrances(now(), ({ url }) => url)).toEqual(silent);
  const [first] = AUTHORITIES;
  if (first === undefined) throw new Error("there are authorities");
  report({ type: "catching-up", authority: first, account: ACCOUNT, sequence: 3n, afterMs: 0 });
  expect(hindrances(now(), ({ url }) => url)).toEqual([`${first.url} is being brought up to date`, ...silent.slice(1)]);
  report({ type: "vote", authority: first, votes: 1, quorum: 5, afterMs: 0 });
  expect(hindrances(now(), ({ url }) => url)).toEqual(silent.slice(1));

  // What holds it up from then on is told anew, and its vote stays counted.
  for (const step of lost()) report(step);
  expect(hindrances(now(), ({ url }) => url)).toEqual(silent);
  expect(transferSteps(now(), "Ethereum")[1]?.detail).toBe("1 of 5 votes");
});

test("any number of node failures keeps the submitted step of a transaction", () => {
  const { report, now } = work("deposit");
  report({ type: "submitted", hash: HASH, afterMs: 0 });
  for (let time = 0; time < 300; time += 1) {
    for (const failure of ["the node is away", undefined]) report({ type: "node", failure, afterMs: time });
  }
  expect(submittedIn(now())).toBe(HASH);
  expect(now().steps.at(-1)).toMatchObject({ type: "node", failure: undefined });
});

test("a payout done without an own transaction was submitted by another account; until then it waits for the wallet", () => {
  const detail = (activity: Activity): string | undefined => chainSteps(activity).find(({ label }) => label === "Submitted to Ethereum")?.detail;
  const { report, now } = work("payout");
  expect(detail(now())).toBeUndefined();
  report({ type: "signing", what: "transaction", afterMs: 0 });
  expect(detail(now())).toBe("confirm the transaction in your wallet");
  expect(detail({ ...now(), state: "failed" })).toBeUndefined();
  expect(detail({ ...now(), state: "done" })).toBe("another account submitted it");
  report({ type: "submitted", hash: HASH, afterMs: 0 });
  expect(detail({ ...now(), state: "done" })).toMatch(/^as 0x2222/);
});
