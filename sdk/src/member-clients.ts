/** The authorities that can be asked: those of the client's list, and members that say themselves where they are. */

import { AuthorityClient } from "./authority.js";
import { memberOf, type AuthorityName, type Committee } from "./committee.js";
import { HTTP_BASE } from "./http.js";
import { isMemberEndpoint, type MemberEndpoint } from "./member-endpoints.js";
import type { Domain } from "./transfer.js";

/** A member that says itself where it is. */
interface Told {
  readonly endpoint: MemberEndpoint;
  readonly client: AuthorityClient;
}

/** See the file's head. */
export class MemberClients {
  readonly #listed: readonly AuthorityClient[];
  readonly #timeoutMs: number;
  readonly #committee: () => Committee;
  readonly #told = new Map<AuthorityName, Told>();
  /** The listed addresses, for the committee `#of`. */
  #named: readonly AuthorityClient[] = [];
  #of: Committee | undefined;
  #all: readonly AuthorityClient[] = [];

  constructor(listed: readonly AuthorityClient[], timeoutMs: number, committee: () => Committee) {
    this.#listed = listed;
    this.#timeoutMs = timeoutMs;
    this.#committee = committee;
  }

  /** All that can be asked. The same list as long as nothing changes. */
  get all(): readonly AuthorityClient[] {
    if (this.#of !== this.#committee()) this.#update();
    return this.#all;
  }

  /** Whether a member neither is listed by its name nor says itself where it is. */
  get isIncomplete(): boolean {
    return this.#committee().members.some(({ votingKey }) => !this.#isListed(votingKey) && !this.#told.has(votingKey));
  }

  /**
   * Takes over the endpoints of members of the committee that are newer than what is known. Returns these. A member
   * whose name and address are listed is reached there.
   */
  learn(domain: Domain, endpoints: readonly MemberEndpoint[]): readonly MemberEndpoint[] {
    const taken = endpoints.filter((endpoint) => {
      const { authority, http, number } = endpoint;
      const known = this.#told.get(authority);
      if (this.#isListed(authority) || http === undefined || !HTTP_BASE.test(http)) return false;
      if ((known !== undefined && known.endpoint.number >= number) || !isMemberEndpoint(domain, endpoint, [this.#committee()])) return false;
      this.#told.set(authority, { endpoint, client: new AuthorityClient(http, authority, this.#timeoutMs) });
      return true;
    });
    this.#update();
    return taken;
  }

  #isListed(name: AuthorityName): boolean {
    return this.#listed.some((listed) => listed.name === name);
  }

  #isMember(name: AuthorityName | undefined): boolean {
    return name !== undefined && memberOf(this.#committee(), name) !== undefined;
  }

  /** The list for the committee: without members that have left, and without an address that is there already. */
  #update(): void {
    const committee = this.#committee();
    if (this.#of !== committee) this.#named = this.#listed.map((listed) => (this.#isMember(listed.name) ? listed : this.#unnamed(listed)));
    this.#of = committee;
    // A listed address stays as it is listed: a member may have signed another member's address.
    const urls = new Set(this.#listed.map(({ url }) => url));
    const isNew = ({ endpoint, client }: Told): boolean => this.#isMember(endpoint.authority) && !urls.has(client.url);
    const told = [...this.#told.values()].filter(isNew).map(({ client }) => client);
    const all = [...this.#named, ...told];
    const isSame = all.length === this.#all.length && all.every((client) => this.#all.includes(client));
    if (!isSame) this.#all = all;
  }

  /**
   * The authority at a listed address without a present member's name, which it is asked for: its keys may have changed.
   * The name counts if it is a member's that is not listed, and that says itself to be there or nowhere. In place of a
   * listed name, it does not count either if another address gives it, too: one of both may have left the committee.
   */
  #unnamed({ url, name: before }: AuthorityClient): AuthorityClient {
    const isRenamed = before !== undefined;
    const counts = (name: AuthorityName, by: AuthorityClient): boolean => {
      if (!this.#isMember(name) || this.#isListed(name)) return false;
      const told = this.#told.get(name);
      if (told !== undefined) return told.client.url === url;
      return !isRenamed || this.#named.every((other) => other === by || other.given !== name);
    };
    return new AuthorityClient(url, undefined, this.#timeoutMs, { others: () => (isRenamed ? this.#named : []), counts });
  }
}
