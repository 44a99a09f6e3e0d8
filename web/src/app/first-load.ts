/** For the build, which puts the code of entries into few files. No page loads this one: `main.tsx` loads the app. */

import "./App";
