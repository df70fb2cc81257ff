// Streamable HTTP in every era, against the fixture server: the conformance suite, then what only HTTP can do.
// Misbehaving backends are in http-call.spec.ts, lost sessions in http-session.spec.ts.

import { http } from '../../../src/transports/http/http.ts';
import { transportConformance } from '../../conformance/transport.ts';
import { upstreamConformance } from '../../conformance/upstream.ts';
import type { HttpServerOptions } from '../../fixtures/http-options.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, openOptions } from './open-http.ts';

const test = suite('http');

const variants: Readonly<Record<string, HttpServerOptions>> = {
  'legacy, SSE': {
    answers: 'sse',
    sse: { ids: true, priming: true, comments: true, crlf: true, multiline: false },
  },
  'legacy, JSON': { answers: 'json' },
  'legacy, stateless': { answers: 'sse', sessions: false },
  modern: { era: 'modern', answers: 'sse' },
  bare: { era: 'bare', answers: 'sse' },
  dual: { era: 'dual', answers: 'sse' },
};

for (const [name, options] of Object.entries(variants)) {
  const subject = {
    name,
    open: async () => {
      const server = await startHttpServer(options);
      const transport = await http.open(httpDefinition(server.url), openOptions());
      return { transport, release: () => server.close() };
    },
  };
  transportConformance(test, subject);
  if (name === 'legacy, SSE') upstreamConformance(test, subject);
}

test.run();
