/** The authorities that can be asked: those of the client's list, and members that say themselves where they are. */

import { AuthorityClient } from "./authority.js";
import { memberOf, type AuthorityName, type Committee } from "./committee.js";
import { isMemberEndpoint, type MemberEndpoint } from "./member-endpoints.js";
import type { Domain } from "./transfer.js";

/** The base of an API's address. */
const HTTP_BASE = /^https?:\/\/[^/?#]+[^?#]*$/;

/** A member that says itself where it is. */
interface Told {
  readonly endpoint: MemberEndpoint;
  readonly client: AuthorityClient;
}

/** See the file's head. */
export class MemberClients {
  readonly #listed: readonly AuthorityClient[];
  readonly #timeoutMs: number;
  readonly #told = new Map<AuthorityName, Told>();
  #all: readonly AuthorityClient[];

  constructor(listed: readonly AuthorityClient[], timeoutMs: number) {
    this.#listed = listed;
    this.#timeoutMs = timeoutMs;
    this.#all = listed;
  }

  /** All that can be asked. The same list as long as nothing changes. */
  get all(): readonly AuthorityClient[] {
    return this.#all;
  }

  /** Whether a member has no address. The name of an authority that is listed without one is known once it has answered. */
  lacks({ members }: Committee): boolean {
    return members.some(({ votingKey }) => !this.#all.some(({ member }) => member === votingKey));
  }

  /**
   * Takes over the endpoints of members of the committee that are newer than what is known. Returns these. A member
   * whose name and address are listed is reached there.
   */
  learn(domain: Domain, committee: Committee, endpoints: readonly MemberEndpoint[]): readonly MemberEndpoint[] {
    const isListed = (name: AuthorityName): boolean => this.#listed.some((listed) => listed.name === name);
    const taken = endpoints.filter((endpoint) => {
      const { authority, http, number } = endpoint;
      const known = this.#told.get(authority);
      if (isListed(authority) || http === undefined || !HTTP_BASE.test(http)) return false;
      if ((known !== undefined && known.endpoint.number >= number) || !isMemberEndpoint(domain, endpoint, [committee])) return false;
      this.#told.set(authority, { endpoint, client: new AuthorityClient(http, authority, this.#timeoutMs) });
      return true;
    });
    this.#update(committee);
    return taken;
  }

  /** The list for this committee: without members that have left, and without an address that is there already. */
  #update(committee: Committee): void {
    // A listed address stays as it is listed: a member may have signed another member's address.
    const urls = new Set(this.#listed.map(({ url }) => url));
    const isNew = ({ endpoint, client }: Told): boolean =>
      memberOf(committee, endpoint.authority) !== undefined && !urls.has(client.url);
    const told = [...this.#told.values()].filter(isNew).map(({ client }) => client);
    const all = [...this.#listed, ...told];
    const isSame = all.length === this.#all.length && all.every((client) => this.#all.includes(client));
    if (!isSame) this.#all = all;
  }
}
