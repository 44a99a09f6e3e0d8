/**
 * The committee, with a client for each authority. The contract defines the members, never the list of addresses.
 * Callers verify the answers.
 */

import type { AccountId } from "./accounts.js";
import { memberOf, type AuthorityClient } from "./authority.js";
import { verifyCertificate, type Certificate, type VerifiedCertificate } from "./certificate.js";
import type { Committees } from "./chain/committees.js";
import type { Committee } from "./committee.js";
import { FastPayError, isFastPayError, messageOf } from "./errors.js";
import { ProblemError } from "./problem.js";
import type { PeerFailure } from "./progress.js";
import { failureOf } from "./quorum/catch-up.js";
import { entryOf, orderText } from "./received.js";
import type { Domain } from "./transfer.js";
import type { AccountState, AuthorityAnswer, PaymentName, ReceivedEntry } from "./views.js";
import { sleep, throwIfAborted } from "./waiting.js";
import { CERTIFICATE_NAMES_MAX, type OrderName } from "./wire.js";

/** Extra time for the other authorities after a quorum has answered a read. */
const GRACE_MS = 100;
/** Extra time for the other authorities after a quorum has answered that an entry does not exist. */
const ABSENCE_MS = 1_000;

/** An authority that has not sent a page of certificates by then is passed over. */
const PAGE_MS = 5_000;

/** What is known of an authority that has not answered within the time for reads. */
const TOO_LATE: PeerFailure = { kind: "silent", message: "no answer in time" };

/** How long reads may take. */
export interface ReadTiming {
  readonly readMs: number;
}

/** The authorities' answers, without those that came too late. */
export type Answers<T> = readonly AuthorityAnswer<T>[];

/** A successful answer. */
export interface Good<T> {
  readonly authority: AuthorityClient;
  readonly answer: T;
}

/** The committees with a client for each authority. */
export class Network {
  readonly domain: Domain;
  readonly committees: Committees;
  readonly authorities: readonly AuthorityClient[];
  /** Aborts all requests, including those in the background, when the client is closed. */
  readonly closed: AbortSignal;
  readonly #readMs: number;

  constructor(
    domain: Domain,
    committees: Committees,
    authorities: readonly AuthorityClient[],
    timing: ReadTiming,
    closed: AbortSignal = new AbortController().signal,
  ) {
    this.domain = domain;
    this.committees = committees;
    this.authorities = authorities;
    this.#readMs = timing.readMs;
    this.closed = closed;
  }

  /** The current committee. */
  get committee(): Committee {
    return this.committees.current;
  }

  /** f + 1: this many equal answers include one of an honest authority. */
  get trusted(): number {
    return this.committee.faultsTolerated + 1;
  }

  /**
   * Asks all authorities at once. Resolves when all have answered, `graceMs` after good answers of a quorum of members (of
   * those accepted by `counts`, if given), or when the time for reads is over.
   */
  async askAll<T>(
    ask: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>,
    options: { signal?: AbortSignal | undefined; graceMs?: number; counts?: (answer: T) => boolean } = {},
  ): Promise<Answers<T>> {
    const given = options.signal === undefined ? this.closed : AbortSignal.any([this.closed, options.signal]);
    throwIfAborted(given);
    const enough = new AbortController();
    const signal = AbortSignal.any([enough.signal, given]);
    const { quorum } = this.committee;
    const { counts = () => true } = options;
    const answers: AuthorityAnswer<T>[] = [];
    let isEnough = false;
    const good = new Set<string>();
    const asked = this.authorities.map(async (authority) => {
      const answer = await this.#answer(authority, ask, signal);
      if (enough.signal.aborted) return;
      answers.push(answer);
      if (answer.error !== undefined || !counts(answer.answer as T)) return;
      good.add(authority.member);
      if (good.size === quorum && !isEnough) {
        isEnough = true;
        void sleep(Math.min(options.graceMs ?? GRACE_MS, this.#readMs), signal).then(() => enough.abort());
      }
    });
    const all = Promise.all(asked).then(() => enough.abort());
    await Promise.race([all, sleep(this.#readMs, signal)]);
    enough.abort();
    throwIfAborted(given);
    return answers;
  }

  async #answer<T>(
    authority: AuthorityClient,
    ask: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<AuthorityAnswer<T>> {
    try {
      return { authority, answer: await ask(authority, signal), error: undefined };
    } catch (error) {
      const known = isFastPayError(error)
        ? error
        : new FastPayError("unreachable", messageOf(error), "", { cause: error });
      return { authority, answer: undefined, error: known };
    }
  }

  /**
   * The same, which needs the good answers of a quorum. Throws `too-few-answers`, whose `details.failures` has the
   * `PeerFailure` of each authority without a good answer, by its URL.
   */
  async askQuorum<T>(
    ask: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>,
    options: { signal?: AbortSignal | undefined; graceMs?: number } = {},
  ): Promise<Answers<T>> {
    const answers = await this.askAll(ask, options);
    const answered = memberAnswers(answers).length;
    const { quorum } = this.committee;
    if (answered >= quorum) return answers;
    const message = `${answered} of the ${quorum} authorities that are needed answered`;
    const failures = this.authorities.flatMap(({ url }) => {
      const answer = answers.find(({ authority }) => authority.url === url);
      if (answer === undefined) return [[url, TOO_LATE] as const];
      return answer.error === undefined ? [] : [[url, failureOf(answer.error)] as const];
    });
    throw new FastPayError("too-few-answers", message, "try again when more of them can be reached", {
      details: { answered, quorum, failures: Object.fromEntries(failures) },
    });
  }

  /** An account's state, at least a quorum's word on it. `graceMs` as of `askAll`. */
  accountStates(
    account: AccountId,
    asset?: `0x${string}`,
    signal?: AbortSignal,
    graceMs = GRACE_MS,
  ): Promise<Answers<AccountState>> {
    return this.askQuorum((authority, until) => authority.account(account, asset, until), { signal, graceMs });
  }

  /** Checks that a certificate is the one of this sender and number. Throws `invalid-certificate`. */
  async verify(certificate: Certificate, account: AccountId, sequence: bigint): Promise<VerifiedCertificate> {
    const committee = await this.committees.get(certificate.epoch);
    const action = "do not trust its source";
    if (committee === undefined) {
      const message = `its epoch ${certificate.epoch} is unknown to the contract`;
      throw new FastPayError("invalid-certificate", message, action);
    }
    const verified = verifyCertificate(certificate, committee, this.domain);
    const { transfer } = verified.order;
    if (transfer.sender === account && transfer.sequence === sequence) return verified;
    throw new FastPayError("invalid-certificate", "it has another sender or number than requested", action);
  }

  /**
   * The certificate that `account` sent under `sequence`, from whichever authority has a valid one first; `first` has a
   * moment before all others. Undefined if nobody has one: that of a settled transfer is found whatever f of them do;
   * of one that too few have confirmed yet, its holder may be too late behind a quorum that has none.
   */
  async findCertificate(
    account: AccountId,
    sequence: bigint,
    options: { first?: AuthorityClient | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<VerifiedCertificate | undefined> {
    const { first, signal } = options;
    const found = new AbortController();
    const until = signal === undefined ? found.signal : AbortSignal.any([found.signal, signal]);
    const without = new Set<string>();
    const ask = async (authority: AuthorityClient): Promise<VerifiedCertificate> => {
      try {
        return await this.verify(await authority.certificate(account, sequence, until), account, sequence);
      } catch (error) {
        if (error instanceof ProblemError && error.problem === "not-found") without.add(authority.member);
        if (without.size === this.committee.quorum) void sleep(ABSENCE_MS, until).then(() => found.abort());
        throw error;
      }
    };
    try {
      const own = first && ask(first);
      const moment = sleep(GRACE_MS, until).then(() => undefined);
      const early = own && (await Promise.race([own.catch(() => undefined), moment]));
      if (early !== undefined) return early;
      const others = this.authorities.filter((authority) => authority !== first).map(ask);
      return await Promise.any(own === undefined ? others : [own, ...others]);
    } catch {
      throwIfAborted(signal);
      return undefined;
    } finally {
      found.abort();
    }
  }

  /**
   * Whether a quorum says that it has no certificate of a number: then the number is not settled, and nothing that it pays
   * for was executed by a quorum. False if too few answer.
   */
  async isWithoutCertificate(account: AccountId, sequence: bigint, signal?: AbortSignal): Promise<boolean> {
    const answers = await this.askAll((authority, until) => authority.certificate(account, sequence, until), {
      signal,
      counts: () => false,
    });
    const without = answers.filter(({ error }) => error instanceof ProblemError && error.problem === "not-found");
    return new Set(without.map(({ authority }) => memberOf(authority))).size >= this.committee.quorum;
  }

  /**
   * Certificates by their names' texts, each verified; what one of `from` lacks or keeps back is asked of the next. Those
   * of settled transfers can be missing where `from` are slow or lie: `findCertificate` asks everybody.
   */
  async readCertificates(
    names: readonly OrderName[],
    from: readonly AuthorityClient[],
  ): Promise<Map<string, VerifiedCertificate>> {
    const found = new Map<string, VerifiedCertificate>();
    for (const authority of from) {
      const wanted = names.filter((name) => !found.has(orderText(name)));
      if (wanted.length === 0) break;
      try {
        for (let at = 0; at < wanted.length; ) {
          const page = wanted.slice(at, at + CERTIFICATE_NAMES_MAX);
          const until = AbortSignal.any([this.closed, AbortSignal.timeout(PAGE_MS)]);
          const { certificates, lookedUp } = await authority.certificates(page, until);
          for (const certificate of certificates) {
            const { sender, sequence } = certificate.order.transfer;
            found.set(orderText({ sender, sequence }), await this.verify(certificate, sender, sequence));
          }
          if (lookedUp === 0) break;
          at += lookedUp;
        }
      } catch {
        throwIfAborted(this.closed);
        // The next one is asked.
      }
    }
    return found;
  }

  /**
   * A payment that `lister` says `account` has received, with the certificate that answers for it. That one is asked
   * first: a credit arrives after its certificate, so an honest lister has it itself.
   */
  async findReceived(
    account: AccountId,
    lister: AuthorityClient,
    { sender, sequence, output }: PaymentName,
    signal?: AbortSignal,
  ): Promise<ReceivedEntry | undefined> {
    const certificate = await this.findCertificate(sender, sequence, { first: lister, signal });
    return certificate && entryOf(certificate, account, output);
  }
}

/** The successful answers. */
export function goodAnswers<T>(answers: Answers<T>): { authority: AuthorityAnswer<T>["authority"]; answer: T }[] {
  return answers.flatMap(({ authority, answer, error }) =>
    error === undefined ? [{ authority, answer: answer as T }] : [],
  );
}

/**
 * The successful answers, one of each member: a member that is listed with two addresses has one voice. An address that is
 * listed with the member's name speaks for it before one that only gives that name.
 */
export function memberAnswers<T>(answers: Answers<T>): { authority: AuthorityAnswer<T>["authority"]; answer: T }[] {
  const voices = new Map<string, { authority: AuthorityAnswer<T>["authority"]; answer: T }>();
  for (const good of goodAnswers(answers)) {
    const member = memberOf(good.authority);
    const isListed = good.authority.name === member;
    if (!voices.has(member) || (isListed && voices.get(member)?.authority.name !== member)) voices.set(member, good);
  }
  return [...voices.values()];
}
