/** The authorities' certificates of a transfer, each checked separately, for display. */

import type { AccountId } from "../accounts.js";
import { isHex, lower, type Hex } from "../bytes.js";
import { inspectCertificate, type Certificate, type CertificateReport } from "../certificate.js";
import { transferDigest } from "../eip712.js";
import { FastPayError } from "../errors.js";
import { memberAnswers } from "../network.js";
import { prunedOf } from "../problem.js";
import type { CertificateEvidence, DepositEntry } from "../views.js";
import type { Context } from "./context.js";

/** The transfer to find: by digest, or by sender and number. */
export type Named = Hex | { readonly account: AccountId; readonly sequence: bigint };

/** Asks all authorities for a certificate, and checks each answer. Reads the archives if they have pruned it. */
export async function gatherEvidence({ network, timing }: Context, named: Named): Promise<CertificateEvidence> {
  if (typeof named === "string" && !isHex(named, 32)) {
    throw new FastPayError("invalid-argument", "a digest has 32 bytes", "give 0x and 64 digits");
  }
  const answers = await network.askAll(
    async (authority, signal) => {
      const certificate =
        typeof named === "string"
          ? await authority.transfer(lower(named), signal)
          : await authority.certificate(named.account, named.sequence, signal);
      return { certificate, report: await reportOf(certificate) };
    },
    { graceMs: timing.readMs },
  );
  async function reportOf(certificate: Certificate): Promise<CertificateReport | undefined> {
    const committee = await network.committees.get(certificate.epoch);
    const { transfer } = certificate.order;
    const isAsked =
      typeof named === "string"
        ? transferDigest(network.domain, transfer) === named.toLowerCase()
        : transfer.sender === named.account && transfer.sequence === named.sequence;
    // Its committee is not final on the contract yet, so the votes cannot be checked.
    if (isAsked && committee === undefined) return undefined;
    const report = inspectCertificate(certificate, committee ?? network.committee, network.domain);
    return isAsked ? report : { ...report, isValid: false, fault: "it belongs to another transfer" };
  }
  const valid = answers.find(({ answer }) => answer?.report?.isValid)?.answer?.certificate;
  const { sender, sequence } = valid?.order.transfer ?? {};
  const certificate =
    valid !== undefined && sender !== undefined && sequence !== undefined
      ? await network.verify(valid, sender, sequence)
      : undefined;
  const isPruned = certificate === undefined && answers.some(({ error }) => prunedOf(error) !== undefined);
  const archived = isPruned && typeof named !== "string" ? await network.archive.number(named.account, named.sequence) : undefined;
  return { certificate, archived, answers };
}

/** A deposit that at least f + 1 authorities report identically; undefined if too few do. */
export async function findDeposit({ network }: Context, index: bigint): Promise<DepositEntry | undefined> {
  const answers = await network.askAll((authority, signal) => authority.deposit(index, signal));
  const counted = new Map<string, DepositEntry>();
  for (const { answer } of memberAnswers(answers, network.committee)) {
    if (answer.index !== index) continue;
    const name = `${answer.recipient}/${answer.asset}/${answer.amount}`;
    counted.set(name, { ...answer, authorities: (counted.get(name)?.authorities ?? 0) + 1 });
  }
  return [...counted.values()].find(({ authorities }) => authorities >= network.trusted);
}
