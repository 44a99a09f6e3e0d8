/**
 * The committee, with a client for each authority. The contract defines the members; the list of addresses only locates
 * them. Callers verify the answers.
 */

import type { AccountId } from "./accounts.js";
import type { ArchivedNumber } from "./archive/page.js";
import { ArchiveReader } from "./archive/read.js";
import { memberIn, type AuthorityClient } from "./authority.js";
import { verifyCertificate, type Certificate, type VerifiedCertificate } from "./certificate.js";
import type { Hex } from "./bytes.js";
import type { Committees } from "./chain/committees.js";
import type { Committee } from "./committee.js";
import { malformed } from "./decode.js";
import { FastPayError, isFastPayError, messageOf } from "./errors.js";
import { MemberClients } from "./member-clients.js";
import type { MemberEndpoint } from "./member-endpoints.js";
import { ProblemError, prunedOf } from "./problem.js";
import type { AuthorityRef, PeerFailure } from "./progress.js";
import { failureOf } from "./quorum/catch-up.js";
import { entryOf, orderText, type Listed } from "./received.js";
import type { Domain } from "./transfer.js";
import type { AccountState, AuthorityAnswer, ProvenTransfer, ReceivedEntry } from "./views.js";
import { sleep, throwIfAborted } from "./waiting.js";
import { CERTIFICATE_NAMES_MAX, type OrderName } from "./wire.js";

/** Extra time for the other authorities after a quorum has answered a read. */
const GRACE_MS = 100;
/** Extra time for the other authorities after a quorum has answered that an entry does not exist. */
const ABSENCE_MS = 1_000;
/** The maximum number of orders whose refused certificates are remembered: retired keys can make any number. */
const OUTDATED_MAX = 10_000;

/** The timeout for a page of certificates, after which the next authority is asked. */
const PAGE_MS = 5_000;

/** The timeout of one request to a member that was found, by default. */
const DEFAULT_REQUEST_MS = 5_000;

/** The failure of an authority that has not answered within the time for reads. */
const TOO_LATE: PeerFailure = { kind: "silent", message: "no answer in time" };

/** The time between two searches for members, at least. */
const SEEK_INTERVAL_MS = 5_000;
/** How often authorities are asked in a search: those that are found may know of others. */
const SEEK_ROUNDS_MAX = 3;

/** The time for reads, and of one request, in milliseconds. */
export interface ReadTiming {
  readonly readMs: number;
  readonly requestMs?: number;
}

/** The authorities' answers and errors, except those that came too late. */
export type Answers<T> = readonly AuthorityAnswer<T>[];

/** A successful answer. */
export interface Good<T> {
  readonly authority: AuthorityClient;
  readonly answer: T;
}

/** The place to begin a search, the order that is searched for, if it is known, and the search's cancellation. */
interface FindOptions {
  readonly first?: AuthorityClient | undefined;
  readonly digest?: Hex | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A search for a number. If f + 1 authorities are beyond it, archives are asked even if no authority has pruned it. */
interface FindNumberOptions extends FindOptions {
  readonly isPassed?: boolean;
}

/** The committees with a client for each authority. */
export class Network {
  readonly domain: Domain;
  readonly committees: Committees;
  /** Aborts all requests, including those in the background, when the client is closed. */
  readonly closed: AbortSignal;
  /** The entries that authorities have pruned. */
  readonly archive: ArchiveReader;
  readonly #readMs: number;
  readonly #members: MemberClients;
  #remember: (endpoint: MemberEndpoint) => void = () => undefined;
  #soughtAtMs = -Infinity;
  #countingSince = 0n;
  /**
   * By the order's digest and the epoch of a certificate: the epoch whose members refuse it. Those of a later one may know
   * more.
   */
  readonly #outdated = new Map<Hex, Map<bigint, bigint>>();

  constructor(
    domain: Domain,
    committees: Committees,
    authorities: readonly AuthorityClient[],
    timing: ReadTiming,
    closed: AbortSignal = new AbortController().signal,
  ) {
    this.domain = domain;
    this.committees = committees;
    this.#members = new MemberClients(authorities, timing.requestMs ?? DEFAULT_REQUEST_MS, () => committees.current);
    this.#readMs = timing.readMs;
    this.closed = closed;
    this.archive = new ArchiveReader(this);
  }

  /** The authorities that can be asked. */
  get authorities(): readonly AuthorityClient[] {
    return this.#members.all;
  }

  /** The current committee. */
  get committee(): Committee {
    return this.committees.current;
  }

  /** f + 1: of this many equal answers, at least one is from an honest authority. */
  get trusted(): number {
    return this.committee.faultsTolerated + 1;
  }

  /** Takes over where members say that they are, unverified. `remember` receives each endpoint that is found later. */
  learn(endpoints: readonly MemberEndpoint[], remember: (endpoint: MemberEndpoint) => void): void {
    this.#remember = remember;
    this.#members.learn(this.domain, endpoints);
  }

  /**
   * After too few answers, or with a new committee: follows the contract, and asks all where the members are that have
   * no address. True if there is a newer committee or another address. Never rejects.
   */
  async seekMembers(): Promise<boolean> {
    if (Date.now() - this.#soughtAtMs < SEEK_INTERVAL_MS) return false;
    this.#soughtAtMs = Date.now();
    const isNew = await this.committees.refresh().catch(() => false);
    return (await this.findMembers()) || isNew;
  }

  /** Asks all authorities where the members are that have no address. True if one was found. Never rejects. */
  async findMembers(): Promise<boolean> {
    let isFound = false;
    for (let round = 0; round < SEEK_ROUNDS_MAX && this.#members.isIncomplete; round += 1) {
      const answers = await this.askAll((authority, until) => authority.endpoints(until)).catch(() => []);
      const told = goodAnswers(answers).flatMap(({ answer }) => answer);
      const found = this.#members.learn(this.domain, told);
      if (found.length === 0) break;
      isFound = true;
      found.forEach(this.#remember);
    }
    return isFound;
  }

  /**
   * Asks all authorities at once. Resolves when all have answered, `graceMs` after a quorum of members have given good
   * answers (only those that `counts` accepts, if given), or when the time for reads is over.
   */
  async askAll<T>(
    ask: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>,
    options: { signal?: AbortSignal | undefined; graceMs?: number; counts?: (answer: T) => boolean } = {},
  ): Promise<Answers<T>> {
    const given = options.signal === undefined ? this.closed : AbortSignal.any([this.closed, options.signal]);
    throwIfAborted(given);
    const enough = new AbortController();
    const signal = AbortSignal.any([enough.signal, given]);
    const { committee } = this;
    const { counts = () => true } = options;
    const answers: AuthorityAnswer<T>[] = [];
    let isEnough = false;
    const good = new Set<string>();
    const asked = this.authorities.map(async (authority) => {
      const answer = await this.#answer(authority, ask, signal);
      if (enough.signal.aborted) return;
      answers.push(answer);
      const member = memberIn(committee, authority);
      if (answer.error !== undefined || member === undefined || !counts(answer.answer as T)) return;
      good.add(member);
      if (good.size === committee.quorum && !isEnough) {
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
   * Like `askAll`, but requires good answers of a quorum. Otherwise throws `too-few-answers`, whose `details.failures`
   * has the `PeerFailure` of each authority without a good answer, by its URL.
   */
  async askQuorum<T>(
    ask: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>,
    options: { signal?: AbortSignal | undefined; graceMs?: number } = {},
  ): Promise<Answers<T>> {
    let answers = await this.askAll(ask, options);
    // Members may have come whose addresses are not listed.
    const counted = (): number => memberAnswers(answers, this.committee).length;
    if (counted() < this.committee.quorum && (await this.seekMembers())) answers = await this.askAll(ask, options);
    const answered = counted();
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

  /** An account's state at each authority, with the answers of at least a quorum. For `graceMs`, see `askAll`. */
  accountStates(
    account: AccountId,
    asset?: `0x${string}`,
    signal?: AbortSignal,
    graceMs = GRACE_MS,
  ): Promise<Answers<AccountState>> {
    return this.askQuorum((authority, until) => authority.account(account, asset, until), { signal, graceMs });
  }

  /** Verifies a certificate, and that it has this sender and number. Throws `invalid-certificate`. */
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

  /** True if f + 1 members have said that a recovery ended an epoch. */
  get isRecovered(): boolean {
    return this.#countingSince > 0n;
  }

  /** Notes that a recovery has ended all epochs before this one, as f + 1 members say. */
  countSince(epoch: bigint): void {
    if (epoch > this.#countingSince) this.#countingSince = epoch;
  }

  /**
   * Notes that members refuse a certificate for its epoch. Then no search finds it any more: it neither hides the one
   * that counts nor keeps its order from being certified again.
   */
  outdate({ digest, epoch }: VerifiedCertificate): void {
    // One that is forgotten costs another question.
    if (this.#outdated.size >= OUTDATED_MAX) this.#outdated.clear();
    const refused = this.#outdated.get(digest) ?? new Map<bigint, bigint>();
    this.#outdated.set(digest, refused.set(epoch, this.committee.epoch));
  }

  /** Forgets that of all certificates of an order, because one of them is settled. */
  countAgain({ digest }: VerifiedCertificate): void {
    this.#outdated.delete(digest);
  }

  #isOutdated({ digest, epoch }: VerifiedCertificate): boolean {
    return this.#outdated.get(digest)?.get(epoch) === this.committee.epoch;
  }

  /**
   * As `verify`, for a certificate from an authority. Also throws if a recovery has ended its epoch, as far as this
   * client knows: then it proves nothing any more.
   */
  verifyCounting(certificate: Certificate, account: AccountId, sequence: bigint): Promise<VerifiedCertificate> {
    if (certificate.epoch >= this.#countingSince) return this.verify(certificate, account, sequence);
    const message = `a recovery has ended its epoch ${certificate.epoch}`;
    return Promise.reject(new FastPayError("invalid-certificate", message, "do not trust its source"));
  }

  /**
   * The certificate of `account`'s order with number `sequence`: the first valid one that an authority returns. `first`
   * is asked `GRACE_MS` before the others. Always finds the certificate of a settled transfer, whatever f authorities
   * do, unless authorities have pruned it. Returns undefined if nobody has a certificate, or if its few holders answer
   * later than `ABSENCE_MS` after a quorum that has none.
   */
  async findCertificate(account: AccountId, sequence: bigint, options: FindOptions = {}): Promise<VerifiedCertificate | undefined> {
    return (await this.#search(account, sequence, options)).certificate;
  }

  /**
   * The transfer of `account` with number `sequence`: proven by its certificate or, if authorities have pruned that, by
   * a checkpoint. `void` if a checkpoint proves that the number is void; otherwise as for `findCertificate`.
   */
  async findNumber(account: AccountId, sequence: bigint, options: FindNumberOptions = {}): Promise<ProvenTransfer | "void" | undefined> {
    const { certificate, isPruned } = await this.#search(account, sequence, options);
    if (certificate !== undefined) return provenBy(certificate);
    return isPruned || options.isPassed === true ? this.findArchived(account, sequence, options) : undefined;
  }

  /** What a checkpoint proves of a number, as for `findNumber`. */
  async findArchived(account: AccountId, sequence: bigint, options: FindOptions): Promise<ProvenTransfer | "void" | undefined> {
    const archived = await this.archive.number(account, sequence, options.signal);
    const proven = archived && (provenByArchive(archived) ?? "void");
    const isOther = proven !== undefined && proven !== "void" && !isSought(proven, options);
    return isOther ? undefined : proven;
  }

  async #search(
    account: AccountId,
    sequence: bigint,
    { first, digest, signal }: FindOptions,
  ): Promise<{ certificate: VerifiedCertificate | undefined; isPruned: boolean }> {
    const { committee } = this;
    let isPruned = false;
    const found = new AbortController();
    const until = signal === undefined ? found.signal : AbortSignal.any([found.signal, signal]);
    const without = new Set<string>();
    const ask = async (authority: AuthorityClient): Promise<VerifiedCertificate> => {
      try {
        const certificate = await this.verifyCounting(await authority.certificate(account, sequence, until), account, sequence);
        if (!isSought(certificate, { digest }) || (digest === undefined && this.#isOutdated(certificate))) {
          throw malformed("the certificate", "of the order that was executed");
        }
        return certificate;
      } catch (error) {
        const isGone = prunedOf(error) !== undefined;
        isPruned ||= isGone;
        const member = memberIn(committee, authority);
        const hasNone = isGone || (error instanceof ProblemError && error.problem === "not-found");
        if (hasNone && member !== undefined) without.add(member);
        if (without.size >= committee.quorum) void sleep(ABSENCE_MS, until).then(() => found.abort());
        throw error;
      }
    };
    try {
      const own = first && ask(first);
      const moment = sleep(GRACE_MS, until).then(() => undefined);
      const early = own && (await Promise.race([own.catch(() => undefined), moment]));
      if (early !== undefined) return { certificate: early, isPruned };
      const others = this.authorities.filter((authority) => authority !== first).map(ask);
      return { certificate: await Promise.any(own === undefined ? others : [own, ...others]), isPruned };
    } catch {
      throwIfAborted(signal);
      return { certificate: undefined, isPruned };
    } finally {
      found.abort();
    }
  }

  /**
   * True if a quorum reports that it has no certificate of a number: then no quorum has executed an order of it, so it
   * is not settled. False if too few answer.
   */
  async isWithoutCertificate(account: AccountId, sequence: bigint, signal?: AbortSignal): Promise<boolean> {
    const answers = await this.askAll((authority, until) => authority.certificate(account, sequence, until), {
      signal,
      counts: () => false,
    });
    const without = answers.filter(({ error }) => error instanceof ProblemError && error.problem === "not-found");
    return membersAmong(without.map(({ authority }) => authority), this.committee) >= this.committee.quorum;
  }

  /**
   * Verified certificates, by their names' texts, and the names of those that an authority has pruned. Asks the
   * authorities `from` one after another for the certificates that are still missing. If these are slow or lie, even the
   * certificate of a settled transfer can be missing: `findCertificate` asks all authorities.
   */
  async readCertificates(
    names: readonly OrderName[],
    from: readonly AuthorityClient[],
  ): Promise<{ found: Map<string, VerifiedCertificate>; pruned: Set<string> }> {
    const found = new Map<string, VerifiedCertificate>();
    const pruned = new Set<string>();
    for (const authority of from) {
      let wanted = names.filter((name) => !found.has(orderText(name)));
      if (wanted.length === 0) break;
      try {
        while (wanted.length > 0) {
          const page = wanted.slice(0, CERTIFICATE_NAMES_MAX);
          const kept = await this.#readPage(authority, page, found);
          const gone = page[0];
          // It has pruned the first one, and with it the sender's earlier ones.
          const isGone = ({ sender, sequence }: OrderName): boolean =>
            kept === undefined && sender === gone?.sender && sequence <= gone.sequence;
          for (const name of wanted.filter(isGone)) pruned.add(orderText(name));
          if (kept === 0) break;
          wanted = kept === undefined ? wanted.filter((name) => !isGone(name)) : wanted.slice(kept);
        }
      } catch {
        throwIfAborted(this.closed);
        // The next authority is asked.
      }
    }
    return { found, pruned };
  }

  /**
   * Adds the certificates of these names that an authority has to `found`. Returns the number of names that its answer
   * covers; undefined if it has pruned the first one.
   */
  async #readPage(
    authority: AuthorityClient,
    names: readonly OrderName[],
    found: Map<string, VerifiedCertificate>,
  ): Promise<number | undefined> {
    try {
      const until = AbortSignal.any([this.closed, AbortSignal.timeout(PAGE_MS)]);
      const { certificates, lookedUp } = await authority.certificates(names, until);
      for (const certificate of certificates) {
        const { sender, sequence } = certificate.order.transfer;
        const verified = await this.verifyCounting(certificate, sender, sequence);
        if (!this.#isOutdated(verified)) found.set(orderText({ sender, sequence }), verified);
      }
      return lookedUp;
    } catch (error) {
      if (prunedOf(error) !== undefined) return undefined;
      throw error;
    }
  }

  /**
   * A payment to `account` that `lister` lists as received, proven by exactly the order that it lists. `lister` is
   * asked first: an honest authority credits a payment after it has received the certificate, and keeps the certificate
   * until it prunes it.
   */
  async findReceived(
    account: AccountId,
    lister: AuthorityClient,
    { sender, sequence, output, digest }: Listed,
    signal?: AbortSignal,
  ): Promise<ReceivedEntry | undefined> {
    const found = await this.findNumber(sender, sequence, { first: lister, digest, signal });
    return found === undefined || found === "void" ? undefined : entryOf(found, account, output);
  }
}

/** Whether it is the order that is searched for. */
function isSought(found: { readonly digest: Hex }, { digest }: Pick<FindOptions, "digest">): boolean {
  return digest === undefined || found.digest === digest;
}

/** A transfer with its certificate. */
export function provenBy(certificate: VerifiedCertificate): ProvenTransfer {
  const { order, digest } = certificate;
  return { transfer: order.transfer, digest, proof: { type: "certificate", certificate } };
}

/** The transfer of an archived number; undefined if the number is void. */
export function provenByArchive({ executed, isPaid, checkpoint }: ArchivedNumber): ProvenTransfer | undefined {
  return executed && { ...executed, proof: { type: "checkpoint", checkpoint, isPaid } };
}

/** The successful answers. */
export function goodAnswers<T>(answers: Answers<T>): { authority: AuthorityAnswer<T>["authority"]; answer: T }[] {
  return answers.flatMap(({ authority, answer, error }) =>
    error === undefined ? [{ authority, answer: answer as T }] : [],
  );
}

/** The number of members of a committee among these authorities. */
export function membersAmong(authorities: Iterable<AuthorityRef>, committee: Committee): number {
  return new Set([...authorities].flatMap((authority) => memberIn(committee, authority) ?? [])).size;
}

/**
 * The successful answers of the members of a committee, one for each, even if two addresses are listed for it. An
 * authority that has left the committee has no voice.
 */
export function memberAnswers<T>(answers: Answers<T>, committee: Committee): { authority: AuthorityAnswer<T>["authority"]; answer: T }[] {
  const voices = new Map<string, { authority: AuthorityAnswer<T>["authority"]; answer: T }>();
  for (const good of goodAnswers(answers)) {
    const member = memberIn(committee, good.authority);
    if (member !== undefined && !voices.has(member)) voices.set(member, good);
  }
  return [...voices.values()];
}
