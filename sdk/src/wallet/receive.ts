/** Incoming payments that few authorities know of: they are brought to all, so that they can be spent. */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { Drive } from "../drive/driver.js";
import { settle } from "../drive/settle.js";
import { readNewest } from "../lists.js";

/** At most so many of the newest payments are compared. */
const COMPARED_MAX = 500;
/** At most so many are brought in one go. */
const SPREAD_MAX = 50;

/** Has the newest payments to `account` confirmed everywhere that fewer than a quorum of authorities list. */
export async function spreadReceived(drive: Drive, account: AccountId): Promise<void> {
  const { network, timing, signal } = drive;
  const lists = await network.askAll(
    async (authority, until) => {
      const { received } = await authority.account(account, undefined, until);
      return readNewest((start) => authority.received(account, start, until), received, COMPARED_MAX);
    },
    // One that is slow may be the only one that has it.
    { signal, graceMs: timing.readMs / 5 },
  );
  const listers = new Map<string, { count: number; lister: AuthorityClient; sender: AccountId; sequence: bigint }>();
  for (const { authority, answer } of lists) {
    const lister = network.authorities.find(({ url }) => url === authority.url);
    for (const { payment } of answer ?? []) {
      const { sender, sequence } = payment;
      const name = `${sender}/${sequence}`;
      const known = listers.get(name);
      if (known !== undefined) known.count += 1;
      else if (lister !== undefined) listers.set(name, { count: 1, lister, sender, sequence });
    }
  }
  const few = [...listers.values()].filter(({ count }) => count < network.committee.quorum).slice(0, SPREAD_MAX);
  for (const { lister, sender, sequence } of few) {
    const certificate = await network.findReceived(account, lister, sender, sequence, signal);
    if (certificate === undefined) continue;
    // It is final whoever has confirmed it; not everywhere yet is no reason to fail. Its steps are not the caller's.
    await settle({ ...drive, tell: () => undefined }, certificate).catch(() => undefined);
  }
}
