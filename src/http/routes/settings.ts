// The settings in effect and where each comes from, as `stagedoor config` prints them. They are changed where they are
// written, and take effect at the next start.

import Type, { type Static } from 'typebox';
import { ALL_SETTINGS } from '../../config/settings.ts';
import { type ConfigRow, kindOfSource, tidySource } from '../../config.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { text } from '../schemas.ts';

const SettingRecord = Type.Object({
  name: text('log_level'),
  /** As it is written in gateway.yaml; `********` for a secret. */
  value: text('info'),
  source: Type.Enum(['flag', 'environment', 'file', 'default'], { examples: ['environment'] }),
  /** Where it was written; absent for a default. */
  from: Type.Optional(text('GATEWAY_LOG_LEVEL')),
  description: text('Least severe level that is logged.'),
});

export const settingRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/gateway/settings',
    summary: 'The settings in effect, and where each comes from',
    scope: 'admin',
    answers: {
      200: {
        description: 'Every setting; secrets are masked',
        body: Type.Object({ settings: Type.Array(SettingRecord) }),
      },
    },
    errors: [],
    handler: (_input, { settings }) => json(200, { settings: settings.map(recordOf) }),
  }),
];

function recordOf({ name, value, source }: ConfigRow): Static<typeof SettingRecord> {
  const kind = kindOfSource(source);
  const description = ALL_SETTINGS.find(({ key }) => key === name)?.doc ?? LISTENER;
  return {
    name,
    value,
    source: kind,
    ...(kind === 'default' ? {} : { from: tidySource(source) }),
    description,
  };
}

/** A listener is made from two settings and has a row of its own. */
const LISTENER = 'Address and port that the gateway listens on.';
