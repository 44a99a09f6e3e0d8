import { QueryClientProvider } from "@tanstack/react-query";
import type { JSX } from "react";

import { makeQueryClient } from "../data/queries";
import { prefetchNetwork } from "../network/NetworkProvider";
import { Pages } from "../pages/Pages";
import { Root } from "./Root";

const queries = makeQueryClient();

/** Resolves when the deployment is loaded, or when loading it has failed. */
export const networkIsSettled = prefetchNetwork(queries);

/** The part of the app that needs a deployment. Its code is loaded after that of the frame and the start page. */
export default function App(): JSX.Element {
  return (
    <QueryClientProvider client={queries}>
      <Root>
        <Pages />
      </Root>
    </QueryClientProvider>
  );
}
