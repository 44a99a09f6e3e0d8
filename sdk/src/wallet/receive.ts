/** Sends received payments that only few authorities have to all of them, so that they can be spent. */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { Operation } from "../quorum/certify.js";
import { settle } from "../quorum/settle.js";
import { readNewest } from "../lists.js";
import { membersAmong } from "../network.js";
import { listedOf, ReceivedProofs, textOf, type Listed } from "../received.js";

/** The number of newest payments that are compared. */
const COMPARED_MAX = 500;
/** The maximum number of certificates sent in one run. */
const SPREAD_MAX = 50;

/**
 * Finds the newest payments to `account` that fewer than a quorum of authorities list, and settles their certificates.
 */
export async function spreadReceived(operation: Operation, account: AccountId): Promise<void> {
  const { network, timing, signal } = operation;
  const lists = await network.askAll(
    async (authority, until) => {
      const { received } = await authority.account(account, undefined, until);
      return readNewest((start) => authority.received(account, start, until), received, COMPARED_MAX);
    },
    // A slow authority may be the only one with a payment.
    { signal, graceMs: timing.readMs / 5 },
  );
  const payments = new Map<string, { listers: Set<AuthorityClient>; listed: Listed }>();
  for (const { authority, answer } of lists) {
    const lister = network.authorities.find(({ url }) => url === authority.url);
    // Newest first: what a list has and others have pruned must not displace what is new.
    for (const item of lister === undefined ? [] : [...(answer ?? [])].reverse()) {
      const listed = listedOf(item);
      const known = payments.get(textOf(listed)) ?? { listers: new Set(), listed };
      payments.set(textOf(listed), { ...known, listers: known.listers.add(lister as AuthorityClient) });
    }
  }
  const members = (listers: ReadonlySet<AuthorityClient>) => membersAmong(listers, network.committee);
  const few = [...payments.values()].filter(({ listers }) => members(listers) < network.committee.quorum);
  const doubted = new Set<AuthorityClient>();
  const proofs = new ReceivedProofs(network, account);
  const brought = new Set<string>();
  for (const { listers, listed } of few) {
    if (brought.size === SPREAD_MAX) break;
    const lister = [...listers].find((authority) => !doubted.has(authority));
    if (lister === undefined) continue;
    const proof = (await proofs.find(lister, listed, signal))?.proof;
    if (proof === undefined) {
      // An authority that lists an unproven payment is not asked again: its inventions must not displace real payments.
      listers.forEach((authority) => doubted.add(authority));
      continue;
    }
    // What a checkpoint proves is settled, and its certificate is pruned.
    if (proof.type === "checkpoint") continue;
    const { certificate } = proof;
    if (brought.has(certificate.digest)) continue;
    brought.add(certificate.digest);
    // Ignore a failure: the next run tries again. The caller gets no steps of this settlement.
    await settle({ ...operation, report: () => undefined }, certificate).catch(() => undefined);
  }
}
