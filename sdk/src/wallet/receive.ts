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
  const payments = new Map<string, { listers: Set<AuthorityClient>; sender: AccountId; sequence: bigint }>();
  for (const { authority, answer } of lists) {
    const lister = network.authorities.find(({ url }) => url === authority.url);
    for (const { payment } of lister === undefined ? [] : (answer ?? [])) {
      const { sender, sequence } = payment;
      const name = `${sender}/${sequence}`;
      const known = payments.get(name) ?? { listers: new Set(), sender, sequence };
      payments.set(name, { ...known, listers: known.listers.add(lister as AuthorityClient) });
    }
  }
  const few = [...payments.values()].filter(({ listers }) => listers.size < network.committee.quorum);
  const doubted = new Set<AuthorityClient>();
  let brought = 0;
  for (const { listers, sender, sequence } of few) {
    if (brought === SPREAD_MAX) break;
    const lister = [...listers].find((authority) => !doubted.has(authority));
    if (lister === undefined) continue;
    const certificate = await network.findReceived(account, lister, sender, sequence, signal);
    if (certificate === undefined) {
      // Who lists what nobody can prove is not asked for more of it: it must not take the place of what is true.
      listers.forEach((authority) => doubted.add(authority));
      continue;
    }
    brought += 1;
    // It is final whoever has confirmed it; not everywhere yet is no reason to fail. Its steps are not the caller's.
    await settle({ ...drive, tell: () => undefined }, certificate).catch(() => undefined);
  }
}
