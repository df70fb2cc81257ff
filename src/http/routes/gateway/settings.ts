// The settings in effect and where each comes from, as `stagedoor config` prints them. A setting is changed at
// its source and takes effect at the next start; only the log level can be changed here, until the next start.

import Type, { type Static } from 'typebox';
import type { ConfigRow } from '../../../config/config.ts';
import { LOG_LEVELS, SETTINGS } from '../../../config/settings.ts';
import { definedFields } from '../../../domain/json/json.ts';
import { closed, text } from '../../records/schemas.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import type { Services } from '../../services.ts';

const SettingRecord = Type.Object({
  name: text('log_level'),
  /** The value as in gateway.yaml; `********` for a secret. */
  value: text('info'),
  /** Unit of a number. */
  unit: Type.Optional(text('seconds')),
  /** `runtime`: changed since the start, until the next one. */
  source: Type.Enum(['flag', 'environment', 'file', 'default', 'runtime'], { examples: ['environment'] }),
  /** Flag, variable or file with the value; absent for a default. */
  from: Type.Optional(text('GATEWAY_LOG_LEVEL')),
  description: text('Minimum level of the messages that are logged.'),
});

const Level = Type.Enum([...LOG_LEVELS], { examples: ['debug'] });
const LevelBody = Type.Object({ level: Level });

const LOG_LEVEL_PATH = '/gateway/log-level';

export const settingRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/settings', {
    summary: 'The settings in effect, and where each comes from',
    scope: 'admin',
    isForwarded: true,
    answers: {
      200: {
        description: 'Every setting; secrets are masked',
        body: Type.Object({ settings: Type.Array(SettingRecord) }),
      },
    },
    handler: (_input, { settings, log }) =>
      json(200, { settings: settings.map((row) => recordOf(row, log)) }),
  }),
  defineRoute('GET', LOG_LEVEL_PATH, {
    summary: 'The log level',
    scope: 'admin',
    answers: { 200: { description: 'The minimum level of the messages that are logged', body: LevelBody } },
    handler: (_, { log }) => json(200, { level: log.level }),
  }),
  defineRoute('PATCH', LOG_LEVEL_PATH, {
    summary: 'Change the log level until the next start',
    scope: 'admin',
    request: { body: closed({ level: Level }) },
    answers: { 200: { description: 'In force now, on this node', body: LevelBody } },
    handler: ({ body }, services) => {
      services.log.level = body.level;
      return json(200, { level: body.level }, { trail: { subject: `${LOG_LEVEL_PATH} ${body.level}` } });
    },
  }),
];

/** The log level is the only setting that changes without a restart. */
function recordOf(
  { name, value, typed, source: from, sourceKind: source, setting }: ConfigRow,
  { level }: Services['log'],
): Static<typeof SettingRecord> {
  const description = setting?.doc ?? 'Address and port that the gateway listens on.';
  if (setting === SETTINGS.logLevel && value !== level)
    return { name, value: level, source: 'runtime', description };
  const unit = typeof typed === 'number' ? setting?.kind.unit : undefined;
  return {
    name,
    value,
    ...definedFields({ unit }),
    source,
    ...(source === 'default' ? {} : { from }),
    description,
  };
}
