/** Nothing that is altered in a certificate passes. That real authorities judge the same is in the live tests. */

import { describe, expect, test } from "vitest";

import {
  inspectCertificate,
  parseCertificate,
  verifyCertificate,
  encodeCertificate,
  type Hex,
} from "../../src/index.js";
import { authorizationOf, committeeOf, domainOf, payments, payouts, transferOf, voteOf } from "../support/vectors.js";

const domain = domainOf(payments.domain);
const committee = committeeOf(payments);
const valid = [...payments.certificates, ...payouts.certificates]
  .filter((vector) => vector.valid)
  .map(({ name, transfer, authorization, epoch, votes }) => ({
    name,
    certificate: {
      order: { transfer: transferOf(transfer), authorization: authorizationOf(authorization) },
      epoch: BigInt(epoch),
      votes: votes.map(voteOf),
    },
  }));

function stands(json: string): boolean {
  try {
    verifyCertificate(parseCertificate(json), committee, domain);
    return true;
  } catch {
    return false;
  }
}

describe.each(valid)("$name", ({ certificate }) => {
  const json = encodeCertificate(certificate);

  test("reads as it was written, and is valid", () => {
    expect(parseCertificate(json)).toEqual(certificate);
    expect(stands(json)).toBe(true);
  });

  test("is invalid with any digit of a hexadecimal field changed", () => {
    // Of each field a few digits, the first and last among them: a signature check takes milliseconds.
    const fields = [...json.matchAll(/"0x([0-9a-f]+)"/g)];
    expect(fields.length).toBeGreaterThan(5);
    for (const field of fields) {
      const [start, length] = [field.index + 3, field[1]?.length ?? 0];
      for (const offset of [0, Math.floor(length / 2), length - 1]) {
        const digit = json[start + offset] ?? "";
        const altered = `${json.slice(0, start + offset)}${digit === "0" ? "1" : "0"}${json.slice(start + offset + 1)}`;
        expect(stands(altered), altered.slice(start - 20, start + offset + 10)).toBe(false);
      }
    }
  });

  test("is invalid with a number changed", () => {
    for (const field of json.matchAll(/"([0-9]+)"/g)) {
      const number = BigInt(field[1] ?? "0");
      const altered = json.replace(field[0], `"${number === 0n ? 1n : number - 1n}"`);
      expect(stands(altered), field[0]).toBe(false);
    }
  });

  test("reports which vote is invalid, and checks the others", () => {
    const votes = certificate.votes.map((vote, i) =>
      i === 1 ? { ...vote, signature: `${vote.signature.slice(0, -6)}000000` as Hex } : vote,
    );
    const report = inspectCertificate({ ...certificate, votes }, committee, domain);
    expect(report.isValid).toBe(false);
    expect(report.votes.map(({ fault }) => fault)).toEqual([undefined, "signature", undefined]);
    expect(() => verifyCertificate({ ...certificate, votes }, committee, domain)).toThrow(
      expect.objectContaining({ code: "invalid-certificate" }),
    );
  });
});
