/** A certificate of an epoch that ended long ago counts with the votes of f + 1 members; silence is none, and no denial. */

import { afterEach, beforeEach, expect, test } from "vitest";

import { problem } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** All authorities refuse a certificate without votes, and answer so when they are asked for a vote. */
function answer(code: string, status: number): void {
  for (const node of scene.nodes) {
    node.lie = ({ path }) => {
      if (path === "/v1/certificates") return problem(409, "unattested");
      return path === "/v1/unlocks/votes" ? problem(status, code) : undefined;
    };
  }
}

test("an order is certified again only if so many deny its certificate that it cannot get the votes", async () => {
  answer("not-requested", 409);
  await expect(scene.pay(7n)).rejects.toMatchObject({ code: "epoch-ended" });
});

test("members that do not answer now do not deny a certificate: it is brought again, and settled", async () => {
  answer("busy", 503);
  let asked = 0;
  for (const node of scene.nodes) {
    const refuse = node.lie;
    node.lie = (request) => {
      if (request.path === "/v1/unlocks/votes") asked += 1;
      return request.path === "/v1/certificates" && asked > 16 ? undefined : refuse(request);
    };
  }
  expect((await scene.pay(7n)).certificate.order.transfer.sequence).toBe(0n);
});
