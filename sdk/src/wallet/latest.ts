/**
 * The newest transfers of all accounts, for display. A certificate proves each of them. Nothing proves that there are
 * no newer ones.
 */

import type { VerifiedCertificate } from "../certificate.js";
import { FastPayError } from "../errors.js";
import { memberAnswers, type Network } from "../network.js";
import { orderText } from "../received.js";
import type { OrderName } from "../wire.js";

/** The number of transfers that are returned, and that an authority lists. */
const LATEST_MAX = 20;

/** Reads the newest transfers repeatedly. Certificates of the previous result are not read again. */
export class LatestTransfers {
  readonly #network: Network;
  #known: ReadonlyMap<string, VerifiedCertificate> = new Map();

  constructor(network: Network) {
    this.#network = network;
  }

  /** The newest transfers, newest first. Throws `too-few-answers` if no authority answers. */
  async read(): Promise<readonly VerifiedCertificate[]> {
    const network = this.#network;
    const answers = memberAnswers(await network.askAll((authority, signal) => authority.newTransfers(signal)), network.committee);
    if (answers.length === 0) {
      throw new FastPayError("too-few-answers", "no authority lists its newest transfers", "try again later");
    }
    const names = newest(answers.map(({ answer }) => answer), network.trusted);
    const known = this.#known;
    const unknown = names.filter((name) => !known.has(orderText(name)));
    const answering = network.authorities.filter(({ url }) => answers.some(({ authority }) => authority.url === url));
    const { found } = await network.readCertificates(unknown, answering);
    // Leave out transfers that nobody proves.
    const proven = names.flatMap((name): [string, VerifiedCertificate][] => {
      const certificate = known.get(orderText(name)) ?? found.get(orderText(name));
      return certificate === undefined ? [] : [[orderText(name), certificate]];
    });
    this.#known = new Map(proven);
    return proven.map(([, certificate]) => certificate);
  }
}

/**
 * Merges the authorities' lists. A transfer is ranked by the best position that at least `trusted` authorities give it,
 * so that f liars alone cannot put an old one first. Transfers that fewer list, as on a busy network, come last.
 */
function newest(lists: readonly (readonly OrderName[])[], trusted: number): OrderName[] {
  const found = new Map<string, { name: OrderName; places: number[] }>();
  for (const list of lists) {
    // A transfer that one authority lists twice counts once.
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
