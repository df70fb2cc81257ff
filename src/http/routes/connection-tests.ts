// The test of a connection before its registration: the same body, the same rules, and nothing is registered.

import Type from 'typebox';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { integer, text } from '../schemas.ts';
import { requireTemplate } from '../visible.ts';
import { checkedCommand, RegisterBody, relocatedFlat, unfold } from './registration.ts';

/** Lines of standard error in an answer. */
const SHOWN_LINES = 20;

const Succeeded = Type.Object({
  ok: Type.Literal(true),
  era: Type.Enum(['legacy', 'modern', 'bare']),
  server: Type.Optional(Type.Object({ name: text('everything'), version: text('2.0.0') })),
  /** How many it lists. */
  tools: integer(13),
  duration_ms: integer(240),
});

const Failed = Type.Object({
  ok: Type.Literal(false),
  error_code: text('BACKEND_UNAVAILABLE'),
  detail: text('The backend is unavailable: connection refused.'),
  /** The last lines of its program. */
  stderr: Type.Array(Type.String()),
  duration_ms: integer(12),
});

export const connectionTestRoutes: readonly Route[] = [
  defineRoute('POST', '/gateway/test', {
    summary: 'Try the connection to an instance without registering it: at most 10 s',
    scope: 'gateway:write',
    request: { body: RegisterBody },
    answers: {
      200: {
        description: 'It was opened, asked for its tools and closed; or why that failed',
        body: Type.Union([Succeeded, Failed]),
      },
    },
    errors: [
      'TEMPLATE_NOT_FOUND',
      'CONFIG_INCOMPLETE',
      'REGISTRY_FULL',
      'ENDPOINT_NOT_ALLOWED',
      'COMMAND_NOT_ALLOWED',
      'QUEUE_FULL',
      'SHUTTING_DOWN',
    ],
    handler: async ({ body, request, principal }, services) => {
      const { template, instance: wanted, isFlat } = unfold(body);
      requireTemplate(principal, template);
      const instance = checkedCommand({ template, instance: wanted, principal, request }, services);
      const isLimited = principal.templates !== undefined;
      const outcome = await services.gateway
        .testConnection(template, instance, { ownerId: principal.id, isLimited, signal: request.signal })
        .catch((thrown: unknown) => {
          throw isFlat ? relocatedFlat(thrown) : thrown;
        });
      if (outcome.isOk) {
        const { era, server, tools, durationMs: duration_ms } = outcome;
        return json(200, { ok: true, era, ...(server && { server }), tools, duration_ms });
      }
      const { error, stderr, durationMs: duration_ms } = outcome;
      const { code: error_code, message: detail } = error;
      return json(200, { ok: false, error_code, detail, stderr: stderr.slice(-SHOWN_LINES), duration_ms });
    },
  }),
];
