/**
 * The newest transfers of all accounts, for display. Each is proven by its certificate; that there are no newer ones
 * nothing proves.
 */

import type { VerifiedCertificate } from "../certificate.js";
import { FastPayError } from "../errors.js";
import { memberAnswers, type Network } from "../network.js";
import { orderText } from "../received.js";
import type { OrderName } from "../wire.js";

/** As many are shown, and as many do authorities list. */
const LATEST_MAX = 20;

/** Reads the newest transfers again and again. Certificates that are still shown are not read twice. */
export class LatestTransfers {
  readonly #network: Network;
  #known: ReadonlyMap<string, VerifiedCertificate> = new Map();

  constructor(network: Network) {
    this.#network = network;
  }

  /** The newest first. Throws `too-few-answers` if no authority lists any. */
  async read(): Promise<readonly VerifiedCertificate[]> {
    const network = this.#network;
    const answers = memberAnswers(await network.askAll((authority, signal) => authority.newTransfers(signal)));
    if (answers.length === 0) {
      throw new FastPayError("too-few-answers", "no authority lists its newest transfers", "try again later");
    }
    const names = newest(answers.map(({ answer }) => answer), network.trusted);
    const known = this.#known;
    const unknown = names.filter((name) => !known.has(orderText(name)));
    const answering = network.authorities.filter(({ url }) => answers.some(({ authority }) => authority.url === url));
    const read = await network.readCertificates(unknown, answering);
    // Leave out transfers that nobody proves.
    const proven = names.flatMap((name): [string, VerifiedCertificate][] => {
      const certificate = known.get(orderText(name)) ?? read.get(orderText(name));
      return certificate === undefined ? [] : [[orderText(name), certificate]];
    });
    this.#known = new Map(proven);
    return proven.map(([, certificate]) => certificate);
  }
}

/**
 * The newest of what the authorities list. One counts from the place that `trusted` of them give it at least, so that
 * none of f liars alone puts an old one first; those that fewer list, as on a busy network, come behind.
 */
function newest(lists: readonly (readonly OrderName[])[], trusted: number): OrderName[] {
  const found = new Map<string, { name: OrderName; places: number[] }>();
  for (const list of lists) {
    // One that is listed twice counts once.
    const names = new Map(list.slice(0, LATEST_MAX).map((name) => [orderText(name), name]));
    [...names].forEach(([text, name], place) => {
      const entry = found.get(text) ?? { name, places: [] };
      entry.places.push(place);
      found.set(text, entry);
    });
  }
  const placeOf = ({ places }: { places: number[] }): number => {
    places.sort((a, b) => a - b);
    return places[trusted - 1] ?? LATEST_MAX + (places[0] ?? 0);
  };
  const placed = [...found.values()].map((entry) => ({ name: entry.name, place: placeOf(entry) }));
  return placed.sort((a, b) => a.place - b.place).slice(0, LATEST_MAX).map(({ name }) => name);
}
