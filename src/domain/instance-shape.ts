// The schema of an instance, compiled once for all checks.

import { InstanceInput } from './instance.ts';
import { compileShape } from './validation.ts';

/** Issues are placed as if the instance were the body. */
export const instanceShape = compileShape(InstanceInput, 'body');
