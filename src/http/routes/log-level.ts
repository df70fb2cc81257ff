// The level of the log of this process, for admins: shown, and changed until the next start. The audit trail records a change.

import Type from 'typebox';
import { LOG_LEVELS } from '../../config/settings.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { CLOSED } from '../schemas.ts';

const Level = Type.Enum([...LOG_LEVELS], { examples: ['debug'] });
const LevelBody = Type.Object({ level: Level });

const PATH = '/gateway/log-level';

export const logLevelRoutes: readonly Route[] = [
  defineRoute('GET', PATH, {
    summary: 'The level of the log',
    scope: 'admin',
    answers: { 200: { description: 'The least serious messages that are logged', body: LevelBody } },
    handler: (_, { log }) => json(200, { level: log.level }),
  }),
  defineRoute('PATCH', PATH, {
    summary: 'Change the level of the log, until the next start',
    scope: 'admin',
    request: { body: Type.Object({ level: Level }, CLOSED) },
    answers: { 200: { description: 'In force now, on this node', body: LevelBody } },
    handler: ({ body }, services) => {
      services.log.level = body.level;
      return json(200, { level: body.level }, { trail: { subject: `${PATH} ${body.level}` } });
    },
  }),
];
