// TABLE of all settings: how each is written as a flag, in the environment and in gateway.yaml, its kind, its default
// and what it does. Help texts, `stagedoor config` and docs/reference/configuration.md are made from it. Its rows stand in
// settings/, by subject. Reading it is config.ts; where values come from is config/sources.ts.

import { ACCESS_SETTINGS } from './settings/access.ts';
import { BALANCING_SETTINGS } from './settings/balancing.ts';
import { SERVICE_SETTINGS } from './settings/service.ts';
import { STORAGE_SETTINGS } from './settings/storage.ts';
import { WEB_SETTINGS } from './settings/web.ts';

/** Every setting there is, in the order of the documents. Source: spec "Configuration"; units and bounds: decisions "Units", ADR 4. */
export const SETTINGS = {
  ...SERVICE_SETTINGS,
  ...BALANCING_SETTINGS,
  ...WEB_SETTINGS,
  ...ACCESS_SETTINGS,
  ...STORAGE_SETTINGS,
} as const;
