import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";

import react from "@vitejs/plugin-react";
import { defineConfig, type Connect, type Plugin } from "vite";

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
  "connect-src 'self' https: http://127.0.0.1:* http://localhost:*",
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
      const { chainId, rpc, contract, token, authorities, relayers } = JSON.parse(readFileSync(path, "utf8"));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ chainId, rpc, contract, token, authorities, relayers }));
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

export default defineConfig({
  plugins: [react(), contentSecurityPolicy(), networkFile()],
  build: { target: "es2022", sourcemap: true, chunkSizeWarningLimit: 700 },
  server: { port: 5173, strictPort: true },
  // As docs/WEB.md tells whoever hosts it.
  preview: { port: 5173, strictPort: true, headers: { "Cross-Origin-Opener-Policy": "same-origin" } },
});
