// The form of one tool, resource or prompt, and the outcome of its newest call.

import { useState } from 'preact/hooks';
import { clock, milliseconds, shortened } from '../format.ts';
import type { JsonObject, Question, Reply } from '../mcp.ts';
import { curlOf, history, type Item, type Run, reply, start } from '../playground.ts';
import { controlOf, initialValue } from '../schema.ts';
import { CopyButton } from './copy.tsx';
import { Icon } from './icon.tsx';
import { Output, Result } from './result.tsx';
import { JsonInput, SchemaFields } from './schema-form.tsx';
import { Segments } from './segments.tsx';
import { Badge } from './state.tsx';
import { Failure } from './status.tsx';

interface RunPanelProps {
  readonly template: string;
  readonly item: Item;
}

const MODES = [
  ['form', 'Form'],
  ['json', 'JSON'],
] as const;
const VERBS = { tools: 'Call', resources: 'Read', prompts: 'Get' } as const;

export function RunPanel({ template, item }: RunPanelProps) {
  const mine = history.value.filter(
    (run) => run.template === template && run.item.kind === item.kind && run.item.id === item.id,
  );
  const [values, setValues] = useState<JsonObject>(() =>
    Object(mine[0]?.values ?? initialValue(item.schema)),
  );
  const [shown, setShown] = useState<Pick<Run, 'id'> | undefined>();
  const run = mine.find(({ id }) => id === shown?.id) ?? mine[0];
  const isRunning = run !== undefined && run.durationMs === undefined;
  return (
    <section class="panel padded stack" aria-labelledby="item">
      <ItemHead {...item} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setShown(undefined);
          void start(template, item, values);
        }}
      >
        <Arguments item={item} chosen={shown} values={values} onChange={setValues} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isRunning}>
            <Icon name="playground" />
            {VERBS[item.kind]}
          </button>
          {isRunning && run.answer === undefined && (
            <button type="button" onClick={() => run.cancellation.abort()}>
              Cancel
            </button>
          )}
          <CopyButton label="Copy as curl" text={() => curlOf(template, item, values)} />
        </div>
      </form>
      {item.outputSchema !== undefined && (
        <details>
          <summary>Schema of the structured result</summary>
          <Output text={JSON.stringify(item.outputSchema, null, 2)} />
        </details>
      )}
      {run !== undefined && <RunView key={run.id} run={run} />}
      {mine.length > 1 && (
        <History
          runs={mine}
          shown={run}
          onShow={(chosen) => {
            setShown({ id: chosen.id });
            setValues(chosen.values);
          }}
        />
      )}
    </section>
  );
}

function ItemHead({ id, title, traits = [], description }: Item) {
  return (
    <>
      <div class="title">
        <h2 id="item">{title}</h2>
        {id !== title && <code class="muted small">{id}</code>}
      </div>
      {traits.length > 0 && (
        <ul class="traits" aria-label="What the tool says of its effects">
          {traits.map((trait) => (
            <li key={trait} class="badge idle">
              {trait}
            </li>
          ))}
        </ul>
      )}
      {description !== '' && <p class="muted description">{shortened(description)}</p>}
    </>
  );
}

interface ArgumentsProps {
  readonly item: Item;
  /** An object that differs for each choice of an earlier call, so that the text begins again. */
  readonly chosen: object | undefined;
  readonly values: JsonObject;
  readonly onChange: (values: JsonObject) => void;
}

/** The arguments: in a form or as JSON, if there are any. */
function Arguments({ item, chosen, values, onChange }: ArgumentsProps) {
  const [mode, setMode] = useState<'form' | 'json'>('form');
  const { schema } = item;
  const hasForm = controlOf(schema).kind === 'object';
  const set = (next: unknown): void => onChange(Object(next));
  if (!hasForm && !takesAnything(item)) return <p class="muted">No arguments.</p>;
  return (
    <>
      {hasForm && <Segments label="Input mode" options={MODES} value={mode} onChoose={setMode} />}
      {hasForm && mode === 'form' ? (
        <SchemaFields schema={schema} root={schema} value={values} onChange={set} />
      ) : (
        <JsonInput key={chosen} label="Arguments as JSON" rows={8} value={values} onChange={set} />
      )}
    </>
  );
}

/** A schema without properties that does not exclude them. */
function takesAnything({ kind, schema }: Item): boolean {
  const { properties, additionalProperties, type } = schema;
  if (kind !== 'tools' || additionalProperties === false) return false;
  return additionalProperties !== undefined || (properties === undefined && type !== 'object');
}

function RunView({ run }: { readonly run: Run }) {
  const { progress, messages, answer, error, durationMs } = run;
  const questions = answer?.questions ?? [];
  return (
    <section class="run" aria-label="Result" aria-live="polite">
      <div class="actions">
        <Outcome run={run} />
        {answer?.instance !== undefined && <span class="muted">by {answer.instance}</span>}
        {durationMs !== undefined && <span class="muted">in {milliseconds(durationMs)}</span>}
      </div>
      {progress !== undefined && durationMs === undefined && (
        <div class="field">
          <progress
            max={progress.total ?? 1}
            value={progress.total === undefined ? undefined : progress.done}
          >
            {progress.done}
          </progress>
          <p class="hint">
            {progress.done}
            {progress.total === undefined ? '' : ` of ${progress.total}`} {progress.text}
          </p>
        </div>
      )}
      {messages.length > 0 && (
        <details open={durationMs === undefined}>
          <summary>Messages of the server ({messages.length})</summary>
          <Output text={messages.join('\n')} />
        </details>
      )}
      {error !== undefined && <Failure text={error} />}
      {questions.length > 0 && <Questions key={JSON.stringify(questions)} run={run} questions={questions} />}
      {answer !== undefined && questions.length === 0 && <Result result={answer.result} />}
    </section>
  );
}

function Outcome({ run: { answer, error, durationMs } }: { readonly run: Run }) {
  if (error !== undefined) return <Badge tone="bad" icon="bad" word="Failed" />;
  if (answer !== undefined && answer.questions.length > 0)
    return <Badge tone="warn" icon="info" word="Asks you" />;
  if (durationMs === undefined) return <Badge tone="idle" icon="starting" word="Running" />;
  return answer?.result.isError === true ? (
    <Badge tone="bad" icon="bad" word="Tool error" />
  ) : (
    <Badge tone="ok" icon="healthy" word="Result" />
  );
}

interface QuestionsProps {
  readonly run: Run;
  readonly questions: readonly Question[];
}

/** The questions of the server before its answer. */
function Questions({ run, questions }: QuestionsProps) {
  const [contents, setContents] = useState<Readonly<Record<string, unknown>>>(() =>
    Object.fromEntries(questions.map(({ key, schema }) => [key, initialValue(schema) ?? {}])),
  );
  const answerAll = (action: Reply['action']): void => {
    const replies = questions.map(({ key }): [string, Reply] => [
      key,
      action === 'accept' ? { action, content: contents[key] } : { action },
    ]);
    void reply(run, Object.fromEntries(replies));
  };
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        answerAll('accept');
      }}
    >
      {questions.map(({ key, message, schema }) => (
        <div key={key} class="form">
          <p class="strong">{message === '' ? 'The server asks for input.' : message}</p>
          <SchemaFields
            schema={schema}
            root={schema}
            value={contents[key]}
            onChange={(next) => setContents({ ...contents, [key]: next })}
          />
        </div>
      ))}
      <div class="actions">
        <button type="submit" class="primary">
          Answer
        </button>
        <button type="button" onClick={() => answerAll('decline')}>
          Decline
        </button>
        <button type="button" class="plain" onClick={() => answerAll('cancel')}>
          Cancel
        </button>
      </div>
    </form>
  );
}

interface HistoryProps {
  readonly runs: readonly Run[];
  readonly shown: Run | undefined;
  readonly onShow: (run: Run) => void;
}

function History({ runs, shown, onShow }: HistoryProps) {
  return (
    <details>
      <summary>Calls before ({runs.length})</summary>
      <ul class="history">
        {runs.map((run) => (
          <li key={run.id}>
            <button type="button" class="plain" aria-pressed={run === shown} onClick={() => onShow(run)}>
              <span class="number">{clock(run.startedAt)}</span>
              <code class="cut">{JSON.stringify(run.values)}</code>
              <Outcome run={run} />
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
