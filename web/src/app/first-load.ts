/**
 * An entry for the build, which then puts the app's code into few files. No page loads it: `main.tsx` loads the app.
 */

import "./App";
