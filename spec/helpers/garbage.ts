// The garbage collector of V8, for specs of what stays in memory.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Collects all garbage, or that of young objects alone. */
export const collectGarbage: (options?: { readonly type: 'minor' }) => void = runInNewContext('gc');
