/**
 * Lists of payments as CSV files, in the format of `fastpay pay --csv`. The columns are `recipient,amount,memo`, or
 * those that the first line names: recipient, amount, asset, memo. Lines that begin with # are comments.
 */

import { keccak_256 } from "@noble/hashes/sha3.js";

import { formatAccount, parseAccount } from "./accounts.js";
import { parseAmount } from "./amounts.js";
import { isHex, toHex, type Address } from "./bytes.js";
import { isFastPayError } from "./errors.js";
import { decodeMemo, encodeMemo } from "./memo.js";
import { invalidList, LIST_LINES_MAX, wholeList } from "./pay-list.js";
import { checkOutput, ETHER, type Domain, type TransferFault } from "./transfer.js";
import type { ListError, ListStatus, PayList, PayListLine } from "./views.js";

const COLUMNS_MAX = 4;

/** A line of the file that is neither empty nor a comment. */
interface Row {
  readonly line: number;
  readonly fields: readonly string[];
  /** The defect in its quotes, if any. */
  readonly fault: string | undefined;
}

/** Options for reading a list. */
export interface ReadListOptions {
  readonly domain: Domain;
  /** The asset of lines without one. */
  readonly asset: Address;
  /** The number of decimals of an asset. An error that it throws is reported for the line. */
  readonly decimals: (asset: Address) => Promise<number>;
}

/**
 * Reads a list. Its name is the hash of the file, so the same file is the same list, also for the command line. Throws
 * `invalid-list`, with all faults and their line numbers in `details.errors`.
 */
export async function readPayList(content: string | Uint8Array, options: ReadListOptions): Promise<PayList> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const rows = await rowsOf(typeof content === "string" ? content : new TextDecoder().decode(content));
  if (rows.length > LIST_LINES_MAX) {
    throw invalidList([wholeList("too-many-lines", `it has more than ${LIST_LINES_MAX} lines`)], "split it");
  }
  const [first] = rows;
  const named = first && namedColumns(first.fields);
  const columns = named ?? { recipient: 0, amount: 1, asset: -1, memo: 2 };
  const lines: PayListLine[] = [];
  const errors: ListError[] = [];
  for (const row of named === undefined ? rows : rows.slice(1)) {
    const read = await lineOf(row, columns, options);
    if ("fault" in read) errors.push(read);
    else lines.push(read);
  }
  if (errors.length > 0) throw invalidList(errors);
  if (lines.length === 0) throw invalidList([wholeList("no-outputs", "the list is empty")], "give lines of recipient,amount");
  return { name: toHex(keccak_256(bytes)), lines };
}

/** The outcome of each line, as a CSV file. */
export async function formatListResult({ payments, orders }: ListStatus): Promise<string> {
  const { unparse } = (await import("papaparse")).default;
  const rows = payments.map(({ line, recipient, asset, amount, memo, page, output }) => {
    const order = orders[page];
    const { state = "open", sequence, digest } = order ?? {};
    const text = decodeMemo(memo);
    return {
      line,
      recipient: formatAccount(recipient),
      asset,
      units: amount.toString(),
      memo: text,
      status: state,
      sequence: sequence?.toString() ?? "",
      output,
      digest: digest ?? "",
    };
  });
  return `${unparse(rows, { newline: "\n" })}\n`;
}

type Columns = Readonly<Record<"recipient" | "amount" | "asset" | "memo", number>>;

/** The columns named by the first line; undefined unless it names both `recipient` and `amount`. */
function namedColumns(fields: readonly string[]): Columns | undefined {
  const names = fields.map((field) => field.toLowerCase());
  const [recipient, amount] = [names.indexOf("recipient"), names.indexOf("amount")];
  if (recipient < 0 || amount < 0) return undefined;
  return { recipient, amount, asset: names.indexOf("asset"), memo: names.indexOf("memo") };
}

async function lineOf(row: Row, columns: Columns, options: ReadListOptions): Promise<PayListLine | ListError> {
  const { line, fields } = row;
  const wrong = (fault: ListError["fault"], message: string): ListError => ({ line, fault, message });
  if (row.fault !== undefined) return wrong("unreadable", row.fault);
  if (fields.length > COLUMNS_MAX) return wrong("unreadable", `there are more than ${COLUMNS_MAX} fields`);
  const field = (name: keyof Columns): string => fields[columns[name]] ?? "";
  if (field("recipient") === "") return wrong("recipient", "there is no recipient");
  if (field("amount") === "") return wrong("amount", "there is no amount");
  try {
    const recipient = parseAccount(field("recipient"));
    const asset = readAsset(field("asset"), options.asset);
    if (asset === undefined) return wrong("asset", `${JSON.stringify(field("asset").slice(0, 64))} is not an asset: give ETH, or a token's address`);
    const amount = parseAmount(field("amount"), await options.decimals(asset));
    checkOutput(recipient, amount, options.domain);
    return { recipient, asset, amount, memo: encodeMemo(field("memo")), line };
  } catch (error) {
    if (!isFastPayError(error)) throw error;
    const faults: Partial<Record<string, ListError["fault"]>> = {
      "invalid-account": "recipient",
      "invalid-amount": "amount",
      "invalid-argument": "memo",
      "invalid-transfer": error.details["fault"] as TransferFault,
    };
    return wrong(faults[error.code] ?? "asset", `${error.message}; ${error.action}`);
  }
}

function readAsset(text: string, otherwise: Address): Address | undefined {
  if (text === "") return otherwise.toLowerCase() as Address;
  if (text.toLowerCase() === "eth") return ETHER;
  if (!isHex(text, 20)) return undefined;
  // Checks the checksum of an address in mixed case.
  parseAccount(text);
  return text.toLowerCase() as Address;
}

async function rowsOf(content: string): Promise<Row[]> {
  const { parse } = (await import("papaparse")).default;
  // Convert all line ends to one kind: the parser detects only the first kind, and a comment that ends with another
  // kind would swallow the next line.
  const text = content.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const rows: Row[] = [];
  let from = 0;
  let line = 1;
  parse<string[]>(text, {
    comments: "#",
    delimiter: ",",
    newline: "\n",
    step({ data, errors, meta }) {
      // The parser skips comments without reporting them, so count their lines here.
      for (; text[from] === "#"; line += 1) from = (text.indexOf("\n", from) + 1) || text.length;
      const fields = data.map((field) => field.trim());
      if (fields.some((field) => field !== "") || fields.length > 1) rows.push({ line, fields, fault: errors[0]?.message.toLowerCase() });
      line += text.slice(from, meta.cursor).split("\n").length - 1;
      from = meta.cursor;
    },
  });
  return rows;
}
