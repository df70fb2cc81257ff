// Preloaded into programs that specs start (helpers/program.ts): what watch-answers.ts finds there is appended to the
// file that the address of this module names, `watch-program.ts?<file>`, and fails the spec when the program is removed.

import { appendFileSync } from 'node:fs';
import { watchAnswers } from './watch-answers.ts';

const file = decodeURIComponent(new URL(import.meta.url).search.slice(1));
watchAnswers((issue) => appendFileSync(file, `${issue}\n`));
