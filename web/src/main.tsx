import "./style-sheets";

import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { makeQueryClient } from "./data/queries";
import { prefetchNetwork } from "./network/NetworkProvider";
import { Router } from "./router";
import { cssVariables, theme } from "./theme";

const queries = makeQueryClient();
prefetchNetwork(queries);

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <Router />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
