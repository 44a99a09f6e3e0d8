import { lazy, Suspense, useEffect, type JSX } from "react";
import { BrowserRouter, Route, Routes, useLocation, useNavigationType } from "react-router";

import { ErrorBoundary } from "./app/Broken";
import { Root } from "./app/Root";
import { HomePage } from "./pages/HomePage";

const PayPage = lazy(() => import("./pages/PayPage"));
const PayListPage = lazy(() => import("./pages/PayListPage"));
const ReceivePage = lazy(() => import("./pages/ReceivePage"));
const DepositPage = lazy(() => import("./pages/DepositPage"));
const RedeemPage = lazy(() => import("./pages/RedeemPage"));
const HistoryPage = lazy(() => import("./pages/HistoryPage"));
const NetworkPage = lazy(() => import("./pages/NetworkPage"));
const ExplorePage = lazy(() => import("./pages/explore/ExplorePage"));
const AccountPage = lazy(() => import("./pages/explore/AccountPage"));
const TransactionPage = lazy(() => import("./pages/explore/TransactionPage"));
const ContactsPage = lazy(() => import("./pages/ContactsPage"));
const TransferPage = lazy(() => import("./pages/explore/TransferPage"));
const ExploredDepositPage = lazy(() => import("./pages/explore/DepositPage"));
const HelpPage = lazy(() => import("./pages/HelpPage"));
const NowherePage = lazy(() => import("./pages/NowherePage"));

/** All routes. The code of each page except the first is loaded on demand. */
export function Router(): JSX.Element {
  return (
    <BrowserRouter>
      <ErrorBoundary>
        <Root>
          <ScrollToTop />
          <Suspense>
            <Routes>
              <Route index element={<HomePage />} />
              <Route path="pay" element={<PayPage />} />
              <Route path="pay/list" element={<PayListPage />} />
              <Route path="receive" element={<ReceivePage />} />
              <Route path="deposit" element={<DepositPage />} />
              <Route path="redeem" element={<RedeemPage />} />
              <Route path="history" element={<HistoryPage />} />
              <Route path="network" element={<NetworkPage />} />
              <Route path="contacts" element={<ContactsPage />} />
              <Route path="help" element={<HelpPage />} />
              <Route path="explore" element={<ExplorePage />} />
              <Route path="explore/account/:account" element={<AccountPage />} />
              <Route path="explore/deposit/:index" element={<ExploredDepositPage />} />
              <Route path="explore/transaction/:hash" element={<TransactionPage />} />
              <Route path="explore/transfer/:digest" element={<TransferPage />} />
              <Route path="explore/transfer/:account/:sequence" element={<TransferPage />} />
              <Route path="*" element={<NowherePage />} />
            </Routes>
          </Suspense>
        </Root>
      </ErrorBoundary>
    </BrowserRouter>
  );
}

/** A new page starts at its top. The browser restores the position on back navigation. */
function ScrollToTop(): null {
  const { pathname } = useLocation();
  const type = useNavigationType();
  useEffect(() => {
    if (type !== "POP") window.scrollTo(0, 0);
  }, [pathname, type]);
  return null;
}
