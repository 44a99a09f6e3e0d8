/** Verifies webhooks as in Standard Webhooks, with Node's own cryptography. */

import { createHmac, timingSafeEqual } from "node:crypto";

/** The maximum age of a message, which bounds replays, and the maximum difference of the clocks. */
const TOLERANCE_SECONDS = 300;

/** True if the message was signed with this secret (`whsec_…`) recently. `now` is in seconds since 1970. */
export function isGenuine(secret, headers, body, now) {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) => headers[`webhook-${name}`]);
  if (!id || !signatures || !/^[0-9]{1,12}$/.test(timestamp ?? "")) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest();
  // The header has several signatures while a secret is being replaced.
  return signatures.split(" ").some((signature) => {
    const [version, value = ""] = signature.split(",");
    const given = Buffer.from(value, "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}
