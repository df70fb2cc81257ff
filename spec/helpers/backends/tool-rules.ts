// The rules about the tools of an instance, for specs that are not about them.

import type { ToolRules } from '../../../src/actors/instances/tool-cache.ts';

/** Every definition is trusted, as it is, and there is room for all. */
export const NO_RULES: ToolRules = { trust: () => undefined, hints: () => ({}), count: () => true };
