/** Decodes the archive's part of the HTTP API (docs/API.md). */

import { COMMITTEE_SIZE_MAX } from "../committee.js";
import { hex, list, malformed, object, optional, text, unsigned, type Decoder } from "../decode.js";
import type { Hex } from "../bytes.js";
import { LEAF_PATH_LENGTH_MAX } from "../merkle.js";
import type { Checkpoint, CheckpointVote } from "./checkpoint.js";
import { ARCHIVE_HEADERS_MAX, type ArchiveEntry, type ArchivePage, type ArchivePlace } from "./page.js";

/** The longest leaf, in bytes: that of a payout with the most outputs is shorter. */
const LEAF_BYTES_MAX = 32_768;
/** The maximum number of entries in a page. */
export const ARCHIVED_ENTRIES_MAX = 100;

const u64 = unsigned(64);

const leaf: Decoder<Hex> = (value, at) => {
  const given = text(value, at);
  if (given.length > 2 + 2 * LEAF_BYTES_MAX || !/^0x(?:[0-9a-f]{2})*$/.test(given)) throw malformed(at, "a leaf");
  return given as Hex;
};

const place: Decoder<ArchivePlace> = (value, at) => {
  const [checkpoint, entry, ...rest] = text(value, at).split(".");
  if (rest.length > 0) throw malformed(at, "two numbers with a dot between them");
  return { checkpoint: u64(checkpoint, at), entry: unsigned(32)(entry, at) };
};

/** The text of a place in an archive. */
export function placeText({ checkpoint, entry }: ArchivePlace): string {
  return `${checkpoint}.${entry}`;
}

/** A page of an archive, not verified. */
export const decodeArchivePage = object<ArchivePage>({
  entries: list(
    object<ArchiveEntry>({ leaf, checkpoint: u64, directions: u64, siblings: list(hex(32), LEAF_PATH_LENGTH_MAX) }),
    ARCHIVED_ENTRIES_MAX,
  ),
  headers: list(
    object<Checkpoint>({
      epoch: u64,
      number: u64,
      previous: hex(32),
      transactionIndex: u64,
      cut: hex(32),
      state: hex(32),
      segment: hex(32),
    }),
    ARCHIVE_HEADERS_MAX,
  ),
  votes: list(object<CheckpointVote>({ authority: hex(32), signature: hex(64) }), COMMITTEE_SIZE_MAX),
  next: optional(place),
});
