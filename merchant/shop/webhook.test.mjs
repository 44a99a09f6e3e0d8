import assert from "node:assert/strict";
import { test } from "node:test";

import { isGenuine } from "./webhook.mjs";

// The standard's published example.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"test": 2432232314}';
const headers = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
const now = 1614265330;

test("a message is genuine as it was signed, also among other signatures", () => {
  assert.equal(isGenuine(secret, headers, body, now), true);
  const several = { ...headers, "webhook-signature": `v1a,x v1,AAAA ${headers["webhook-signature"]}` };
  assert.equal(isGenuine(secret, several, body, now + 300), true);
});

test("another secret, body, id, time or version, or none of them, is refused", () => {
  const wrong = (change, text = body, at = now, key = secret) => isGenuine(key, { ...headers, ...change }, text, at);
  assert.equal(wrong({}, `${body} `), false);
  assert.equal(wrong({}, body, now + 301), false);
  assert.equal(wrong({}, body, now - 301), false);
  assert.equal(wrong({}, body, now, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), false);
  assert.equal(wrong({ "webhook-id": "msg_other" }), false);
  assert.equal(wrong({ "webhook-timestamp": "1614265331" }), false);
  assert.equal(wrong({ "webhook-timestamp": "soon" }), false);
  assert.equal(wrong({ "webhook-signature": headers["webhook-signature"].replace("v1", "v2") }), false);
  for (const name of Object.keys(headers)) assert.equal(wrong({ [name]: undefined }), false);
});
