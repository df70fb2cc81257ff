// Preloaded into programs that specs start (helpers/programs/program.ts). What watch-answers.ts finds is appended to the file named
// in the URL of this module, `watch-program.ts?<file>`, and fails the spec when the program is removed.

import { appendFileSync } from 'node:fs';
import { watchAnswers } from './watch-answers.ts';

const file = decodeURIComponent(new URL(import.meta.url).search.slice(1));
watchAnswers((issue) => appendFileSync(file, `${issue}\n`));
