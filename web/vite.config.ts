import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";

import react from "@vitejs/plugin-react";
import { defineConfig, type Connect, type Plugin, type Rolldown } from "vite";

/**
 * What the built page may load and whom it may ask. Scripts come from its own host alone; the Ethereum node and the
 * authorities are named in network.json, which the build does not know, so any host over TLS is allowed, and this
 * machine without. Who hosts the page can narrow that down with a header (docs/WEB.md).
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  // The component library writes its variables into a style element.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  // The sockets are WalletConnect's, for a page whose host configured it.
  "connect-src 'self' https: wss://relay.walletconnect.org wss://relay.walletconnect.com http://127.0.0.1:* http://localhost:*",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

function contentSecurityPolicy(): Plugin {
  return {
    name: "content-security-policy",
    apply: "build",
    transformIndexHtml: () => [
      {
        tag: "meta",
        attrs: { "http-equiv": "Content-Security-Policy", content: CONTENT_SECURITY_POLICY },
        injectTo: "head-prepend",
      },
    ],
  };
}

/**
 * Serves /network.json from the file that FASTPAY_NETWORK names, such as the localnet's: of it, only what a page may know.
 * The localnet's also has the keys of its rich accounts.
 */
function networkFile(): Plugin {
  const answer = (_request: IncomingMessage, response: ServerResponse): void => {
    const path = process.env.FASTPAY_NETWORK;
    try {
      if (path === undefined) throw new Error("set FASTPAY_NETWORK to the localnet's network.json, or run `make web`");
      const { chainId, rpc, contract, ledger, token, authorities, relayers } = JSON.parse(readFileSync(path, "utf8"));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ chainId, rpc, contract, ledger, token, authorities, relayers }));
    } catch (error) {
      response.statusCode = 404;
      response.end(String(error));
    }
  };
  const serve = ({ middlewares }: { middlewares: Connect.Server }): void => {
    middlewares.use("/network.json", answer);
  };
  return { name: "network-file", configureServer: serve, configurePreviewServer: serve };
}

const EARLY = "src/early.ts";
/** Has the build treat the app, which every visit loads after its frame, as an entry. */
const APP = "src/app/first-load.ts";

/** Puts the script that asks ahead before all others, behind the policy only; it waits for none of them. */
function askAhead(): Plugin {
  let isBuild = false;
  return {
    name: "ask-ahead",
    configResolved({ command }) {
      isBuild = command === "build";
    },
    buildStart() {
      if (!isBuild) return;
      this.emitFile({ type: "chunk", id: EARLY, name: "early" });
      this.emitFile({ type: "chunk", id: APP, name: "app" });
    },
    transformIndexHtml(_html, { bundle = {} }) {
      const built = Object.values(bundle).find((file) => file.type === "chunk" && file.name === "early");
      const src = `/${built?.fileName ?? EARLY}`;
      return [{ tag: "script", attrs: { type: "module", async: true, src, fetchpriority: "high" }, injectTo: "head-prepend" }];
    },
  };
}

/** What draws the frame of the page. */
const FRAME_LIBRARIES = /node_modules\/(react|react-dom|react-router|scheduler|@mantine|@tabler|clsx)\/|rolldown\/runtime|vite\//;

/** What the first page may take: bytes of all its files, compressed, and files. */
const FIRST_LOAD_BYTES_MAX = 300_000;
const FIRST_LOAD_FILES_MAX = 8;

/** Fails a build whose first page is too large, whose components lack their style sheets, or that has source maps. */
function budget(): Plugin {
  return {
    name: "budget",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        const first = firstLoad(bundle);
        const bytes = first.reduce((sum, file) => sum + gzipSync(contentOf(file)).length, 0);
        this.info(`first load: ${first.length} files, ${(bytes / 1000).toFixed(0)} kB compressed`);
        if (bytes > FIRST_LOAD_BYTES_MAX) this.error(`the first page takes ${bytes} bytes; ${FIRST_LOAD_BYTES_MAX} are allowed`);
        if (first.length > FIRST_LOAD_FILES_MAX) this.error(`the first page takes ${first.length} files; ${FIRST_LOAD_FILES_MAX} are allowed`);
        const sheets = readFileSync("src/style-sheets.ts", "utf8");
        const missing = styledComponents(bundle).filter((name) => !sheets.includes(`styles/${name}.css`));
        if (missing.length > 0) this.error(`src/style-sheets.ts lacks ${missing.join(", ")}`);
      },
    },
    writeBundle({ dir = "dist" }) {
      const names = readdirSync(dir, { recursive: true, encoding: "utf8" });
      const isMapped = (name: string): boolean => /\.(js|css)$/.test(name) && readFileSync(`${dir}/${name}`, "utf8").includes("sourceMappingURL=");
      const [first, ...others] = names.filter((name) => name.endsWith(".map") || isMapped(name));
      if (first !== undefined) this.error(`the build has source maps: ${first} and ${others.length} others`);
    },
  };
}

type File = Rolldown.OutputChunk | Rolldown.OutputAsset;

/** The page's HTML, its scripts with all that they import, and its style sheet. */
function firstLoad(bundle: Rolldown.OutputBundle): File[] {
  const files = Object.values(bundle);
  const names = new Set<string>();
  const add = (name: string): void => {
    const file = bundle[name];
    if (file === undefined || names.has(name)) return;
    names.add(name);
    if (file.type === "chunk") file.imports.forEach(add);
  };
  files.filter((file) => file.type === "chunk" && file.isEntry).forEach(({ fileName }) => add(fileName));
  const isOfBuild = (file: File): boolean => file.type === "chunk" && file.facadeModuleId?.endsWith(APP) === true;
  return files.filter((file) => !isOfBuild(file) && (names.has(file.fileName) || /\.(html|css)$/.test(file.fileName)));
}

function contentOf(file: File): string | Uint8Array {
  return file.type === "chunk" ? file.code : file.source;
}

/** The library's components that are in the bundle and have a style sheet. */
function styledComponents(bundle: Rolldown.OutputBundle): string[] {
  const modules = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  const names = modules.flatMap((id) => /@mantine\/core\/.*\/(\w+)\.module\.mjs$/.exec(id)?.[1] ?? []);
  return [...new Set(names)].filter((name) => existsSync(`../node_modules/@mantine/core/styles/${name}.css`));
}

export default defineConfig({
  plugins: [react(), askAhead(), contentSecurityPolicy(), networkFile(), budget()],
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 1_000,
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        // The frame and the rest, each apart from its libraries: a new version of the page leaves those in the cache.
        codeSplitting: {
          groups: [
            { name: "frame-libraries", tags: ["$initial"], test: FRAME_LIBRARIES, priority: 3 },
            { name: "libraries", tags: ["$initial"], test: /node_modules/, priority: 2 },
            { name: "frame", tags: ["$initial"], test: /src\/main\.tsx$/, priority: 1 },
            { name: "page", tags: ["$initial"], test: (id) => /\.[jt]sx?$/.test(id) && !id.endsWith(EARLY) },
          ],
        },
      },
    },
  },
  server: { port: 5173, strictPort: true },
  // As docs/WEB.md tells whoever hosts it.
  preview: { port: 5173, strictPort: true, headers: { "Cross-Origin-Opener-Policy": "same-origin" } },
});
