import "./style-sheets";

import { MantineProvider } from "@mantine/core";
import { lazy, StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";

import { Arrival } from "./app/Arrival";
import { ErrorBoundary } from "./app/Broken";
import { cssVariables, theme } from "./theme";

// The app's code loads while the frame is rendered. The app replaces the frame once the deployment is loaded, too.
const loading = import("./app/App");
const App = lazy(async () => {
  const app = await loading;
  await app.networkIsSettled;
  return app;
});

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
      <BrowserRouter>
        <ErrorBoundary>
          <Suspense fallback={<Arrival />}>
            <App />
          </Suspense>
        </ErrorBoundary>
      </BrowserRouter>
    </MantineProvider>
  </StrictMode>,
);
