// The ways in which clients connect to a template or a view: the same texts as in the command `connect`.

import { isAdmin } from '../account.ts';
import { get } from '../api.ts';
import { CopyButton } from '../parts/copy.tsx';
import { Icon } from '../parts/icon.tsx';
import { useLoaded } from '../parts/load.ts';
import { Output } from '../parts/result.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Segments } from '../parts/segments.tsx';
import { Empty, Failure, Loading } from '../parts/status.tsx';
import { TemplateSelect } from '../parts/template-select.tsx';
import { href, route, setParams } from '../router.ts';
import { balancers, templates } from '../store.ts';

type Transport = 'http' | 'stdio';

const TRANSPORTS: Readonly<Record<Transport, string>> = {
  http: 'MCP endpoint',
  stdio: 'Program (bridge)',
};

interface Snippet {
  readonly kind: string;
  readonly title: string;
  readonly transport: Transport;
  readonly transports: readonly Transport[];
  readonly text: string;
  readonly location?: string;
  readonly steps: readonly string[];
  readonly hints: readonly string[];
}

/** The name of all templates in the address; no template may have it. */
const ALL = '*';

export function ConnectPage() {
  const used = [...templates.value].filter(([, members]) => members.length > 0).map(([name]) => name);
  const views = useLoaded(() => get<{ readonly views: readonly { id: string }[] }>('gateway/views'), []).data;
  // Empty: all templates at once, at /mcp.
  const names = [
    '',
    ...(used.length > 0 ? used : templates.value.keys()),
    ...(views?.views.map(({ id }) => id) ?? []),
  ];
  const template = route.value.params.get('template') ?? names[1];
  return (
    <>
      <div class="title">
        <h1>Connect a client</h1>
        <TemplateSelect
          names={names}
          value={template === ALL ? '' : template}
          onChange={(name) => setParams({ template: name === '' ? ALL : name })}
        />
        {isAdmin.value && (
          <a class="button" href={href('users', { new: 'key' })}>
            <Icon name="plus" />
            New API key
          </a>
        )}
      </div>
      {template !== undefined && <Snippets key={template} template={template} />}
      {template === undefined && balancers.value === undefined && <Loading what="templates" />}
      {template === undefined && balancers.value !== undefined && <Empty title="No template yet." />}
    </>
  );
}

function Snippets({ template }: { readonly template: string }) {
  const transport = route.value.params.get('transport') ?? 'http';
  const path = `gateway/connect${template === ALL ? '' : `/${template}`}?transport=${transport}`;
  const { data, error, reload } = useLoaded(
    () => get<{ readonly snippets: readonly Snippet[] }>(path),
    [path],
  );
  if (error !== undefined) return <Failure text={error} onRetry={reload} />;
  if (data === undefined) return <Loading what="clients" />;
  const kind = route.value.params.get('client');
  const shown = data.snippets.find((each) => each.kind === kind) ?? data.snippets[0];
  const choose = (client: string): void => setParams({ client });
  return (
    <div class="playground">
      {isNarrow.value ? (
        <select
          aria-label="Client"
          value={shown?.kind}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {data.snippets.map((each) => (
            <option key={each.kind} value={each.kind}>
              {each.title}
            </option>
          ))}
        </select>
      ) : (
        <ul class="panel items list">
          {data.snippets.map((each) => (
            <li key={each.kind} class="line">
              <button
                type="button"
                class="item"
                aria-current={each === shown ? 'true' : undefined}
                onClick={() => choose(each.kind)}
              >
                <span class="strong">{each.title}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {shown !== undefined && <SnippetView snippet={shown} />}
    </div>
  );
}

function SnippetView({ snippet }: { readonly snippet: Snippet }) {
  const { title, text, transport, transports, location, steps, hints } = snippet;
  return (
    <section class="panel padded">
      <div class="title">
        <h2>{title}</h2>
        <CopyButton label="Copy" text={() => text} />
      </div>
      {transports.length > 1 && (
        <Segments
          label="Transport"
          options={transports.map((each) => [each, TRANSPORTS[each]])}
          value={transport}
          onChoose={(chosen) => setParams({ transport: chosen })}
        />
      )}
      {steps.length > 0 && (
        <ol>
          {steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      )}
      {location !== undefined && (
        <p class="muted">
          Into <code>{location}</code>
        </p>
      )}
      <Output text={text} />
      {hints.map((hint) => (
        <p key={hint} class="hint">
          {hint}
        </p>
      ))}
    </section>
  );
}
