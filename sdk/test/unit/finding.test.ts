/** Members that the list of addresses lacks are found by what they say themselves, and by nothing else. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { formatAccount, makeCommittee, memberEndpointDigest, memoryStore } from "../../src/index.js";
import { AuthorityClient } from "../../src/authority.js";
import { MemberClients } from "../../src/member-clients.js";
import { isMemberEndpoint, type MemberEndpoint } from "../../src/member-endpoints.js";
import { Network } from "../../src/network.js";
import { rememberEndpoint, storedEndpoints } from "../../src/storage/endpoints.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { authorities, committeeOfKeys, DOMAIN, Keys } from "../support/committee.js";
import { TestNode } from "../support/node.js";
import { Scene, TIMING } from "../support/scene.js";
import { domainOf, endpoints } from "../support/vectors.js";

describe("vectors", () => {
  const domain = domainOf(endpoints.domain);
  const recent = endpoints.committees.map((members, epoch) => makeCommittee(BigInt(epoch), members)).slice(-2);

  test.each(endpoints.endpoints)("$name", ({ number, http, tlsCa, digest, valid, ...rest }) => {
    const some = (text: string): string | undefined => (text === "" ? undefined : text);
    const endpoint = { ...rest, number: BigInt(number), http: some(http), tlsCa: some(tlsCa) };
    expect(memberEndpointDigest(domain, endpoint)).toBe(digest);
    expect(isMemberEndpoint(domain, endpoint, recent)).toBe(valid);
  });
});

/** What a member says, decoded. */
function said(keys: Keys, number: bigint, http: string): MemberEndpoint {
  return { ...keys.endpoint(number, http), number, tlsCa: undefined };
}

test("of a member the highest number counts, and the store keeps it", async () => {
  const keys = authorities(4);
  const committee = committeeOfKeys(keys);
  const clients = new MemberClients([], 1_000, () => committee);
  const [first, second] = keys as [Keys, Keys];
  const learn = (...told: MemberEndpoint[]): bigint[] => clients.learn(DOMAIN, told).map(({ number }) => number);
  const forged = { ...said(first, 9n, "http://b.example"), authority: second.votingKey };
  expect(learn(said(first, 5n, "http://a.example"), forged, said(new Keys("stranger"), 7n, "http://c.example"))).toEqual([5n]);
  expect(learn(said(first, 4n, "http://old.example"), said(first, 5n, "http://same.example"))).toEqual([]);
  expect(clients.all.map(({ url }) => url)).toEqual(["http://a.example"]);
  expect(learn(said(first, 6n, "http://new.example"))).toEqual([6n]);
  expect(clients.all.map(({ url, member }) => [url, member])).toEqual([["http://new.example", first.votingKey]]);
  expect(learn(said(second, 1n, "ftp://d.example"))).toEqual([]);

  const store = memoryStore();
  for (const number of [9n, 10n]) await rememberEndpoint(store, DOMAIN, said(first, number, "http://a.example"));
  expect(await storedEndpoints(store, DOMAIN)).toEqual([said(first, 10n, "http://a.example")]);
});

describe("three of four members are replaced", () => {
  let scene: Scene;
  let news: TestNode[];

  beforeEach(async () => {
    scene = await Scene.open();
    const keys = authorities(3, "new");
    news = await Promise.all(keys.map((key) => TestNode.start(key)));
    for (const node of news) {
      node.account(scene.alice.account).balance = 100n;
      Object.assign(node, { epoch: 1n });
    }
    const stays = scene.node(0);
    Object.assign(stays, { epoch: 1n });
    scene.chain.epochs.push(committeeOfKeys([stays.keys, ...keys], 1n));
    stays.lie = ({ path }) => {
      const told = news.map(({ keys: own, url }) => own.endpoint(5n, url));
      return path === "/v1/endpoints" ? { status: 200, body: { endpoints: told } } : undefined;
    };
  });

  afterEach(async () => {
    await Promise.all(news.map((node) => node.stop()));
    await scene.close();
  });

  const leave = (): Promise<unknown> => Promise.all([1, 2, 3].map((number) => scene.node(number).stop()));

  test("a client that knew the four pays on through the one that stays", async () => {
    await leave();
    const receipt = await scene.pay(3n, { timing: { deadlineMs: 1_000 } });
    await receipt.rest;
    expect(receipt.certificate.epoch).toBe(1n);
    expect(news.map((node) => node.account(scene.alice.account).next)).toEqual([1n, 1n, 1n]);
  });

  test("its reads find them, too", async () => {
    await leave();
    const { network } = scene.context;
    expect((await network.accountStates(scene.alice.account)).length).toBeGreaterThanOrEqual(3);
    const urls = network.authorities.map(({ url }) => url);
    expect(urls).toEqual(expect.arrayContaining(news.map(({ url }) => url)));
  });

  test("a watch that began before follows them", async () => {
    const end = new AbortController();
    const asked = new Set<string>();
    for (const node of news) {
      node.lie = ({ path }) => {
        if (path.includes(formatAccount(scene.bob.account))) asked.add(node.url);
        return undefined;
      };
    }
    const reading = (async () => {
      for await (const event of watchAccount(scene.context, scene.bob.account, undefined, end.signal)) return event;
      return undefined;
    })();
    await leave();
    await vi.waitFor(() => expect([...asked].sort()).toEqual(news.map(({ url }) => url).sort()), 20_000);
    end.abort();
    expect(await reading).toBeUndefined();
  }, 30_000);

  test("what is not signed by its member is of no use", async () => {
    await leave();
    const [a, b] = news as [TestNode, TestNode];
    scene.node(0).lie = ({ path }) => {
      const told = { ...a.keys.endpoint(5n, b.url), authority: b.keys.votingKey };
      return path === "/v1/endpoints" ? { status: 200, body: { endpoints: [told] } } : undefined;
    };
    await expect(scene.pay(3n, { timing: { deadlineMs: 500 } })).rejects.toMatchObject({ code: "too-few-answers" });
    expect(scene.context.network.authorities.length).toBe(4);
  });

  test("members that are found have their names", async () => {
    const { network } = scene.context;
    await network.committees.refresh();
    const clients = new MemberClients([...network.authorities], TIMING.requestMs, () => network.committee);
    expect(clients.isIncomplete).toBe(true);
    clients.learn(DOMAIN, news.map(({ keys, url }) => said(keys, 5n, url)));
    expect(clients.isIncomplete).toBe(false);
    expect(new Network(DOMAIN, network.committees, clients.all, TIMING).authorities.length).toBe(7);
  });
});

test("a member that signs another member's listed address takes no vote from it", async () => {
  const scene = await Scene.open();
  const [liar, robbed, , missing] = scene.nodes as [TestNode, TestNode, TestNode, TestNode];
  liar.lie = ({ path }) => {
    const told = [liar.keys.endpoint(9n, `${robbed.url}/`), missing.keys.endpoint(5n, missing.url)];
    if (path === "/v1/endpoints") return { status: 200, body: { endpoints: told } };
    return path === "/v1/orders" || path === "/v1/certificates" ? "hang" : undefined;
  };
  const unnamed = scene.nodes.slice(0, 3).map(({ url }) => new AuthorityClient(url, undefined, TIMING.requestMs));
  const network = new Network(DOMAIN, scene.context.network.committees, unnamed, TIMING);
  expect(await network.findMembers()).toBe(true);
  expect(network.authorities.map(({ url }) => url)).toEqual(scene.nodes.map(({ url }) => url));
  const receipt = await scene.pay(3n, { network, timing: { deadlineMs: 3_000, backgroundMs: 0 } });
  await receipt.rest;
  await scene.close();
});
