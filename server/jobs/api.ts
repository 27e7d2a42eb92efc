import { z } from 'zod'
import { created, operation, type Call, type Resource } from '../api/endpoint.ts'
import { ACTOR, listOf, NUMBER, pageOf, RELEASE_NAME, TIME } from '../api/fields.ts'
import { PAGE_QUERY } from '../api/filters.ts'
import { admitStream, EVENT_STREAM, openStream, serverSentEvent, type StreamParts } from '../api/server-sent-events.ts'
import { JOB_NAME, RUN } from '../api/shapes.ts'

export type { Run } from '../api/shapes.ts'
export type KeptRun = z.infer<typeof KEPT_RUN>
export type Job = z.infer<typeof JOB>
type Deck = Pick<import('../deck.ts').Deck, 'jobs'>

const FOLLOW_EVERY_MS = 50
const MAX_UNSENT_BYTES = 256 * 1024

const KEPT_RUN = z.strictObject({ ...RUN.shape,
  output: z.string().nullable().describe(
    'the last 64 Ki characters of stdout and stderr, without control sequences; null: no longer kept'
  ) }).meta({ id: 'JobRunWithOutput' })

const JOB = z.strictObject({ name: JOB_NAME,
  cron: z.string().nullable().describe('null: it runs only when somebody starts it'),
  timeZone: z.string().nullable().describe('in which its cron expression counts; null: that of the app'),
  overlap: z.enum(['skip', 'queue', 'replace']).describe('what happens when its time comes while it still runs'),
  timeoutMs: NUMBER, nextAt: TIME.nullable().describe('when it runs next; null: it is paused, or has no times'),
  paused: z.strictObject({ at: TIME, actor: ACTOR }).nullable(),
  isWaiting: z.boolean().describe('whether another run starts once this one has ended'),
  running: NUMBER.nullable().describe('the id of the run that has not ended'),
  isFailing: z.boolean().describe(
    'whether it runs by the clock and has failed since its last good run, and nobody has acknowledged that'
  ), last: RUN.nullable().describe('the newest run') }).meta({ id: 'Job' })

const ORDER = z.strictObject({
  command: z.array(z.string().max(32_768).regex(/^[^\0]*$/).describe('a text without NUL')).min(1).max(1000).refine((
    [program]
  ) => program !== '').meta({ description: 'a list of a program and its arguments',
    examples: [['npm', 'run', 'migrate']] }),
  process: z.strictObject({ pid: NUMBER, startTime: z.string().max(100) }).optional().describe(
    'a process of this machine in which it runs already, in a terminal of its own: nothing is started'
  )
})
export type Place = z.infer<typeof PLACE>
const PLACE = z.strictObject({ release: RELEASE_NAME, cwd: z.string(),
  variables: z.string().describe(
    'a UNIX socket that gives all variables of the workers once, as a JSON object, to a process of the same user on the same machine; after 10 s it is gone'
  ) }).meta({ id: 'RunPlace' })
const EXIT = z.strictObject({ code: z.int().min(0).max(255).nullable(),
  signal: z.string().max(20).regex(/^SIG[A-Z0-9]+$/).nullable() })
const END = z.strictObject({
  isForced: z.boolean().optional().describe('true: SIGKILL at once, without SIGTERM and a grace of 5 s')
})
const PART =
  'text and its stream, `{ "stream": "stdout", "text": "…" }`; of `dropped` how many characters were skipped; of `end` the JobRun'

export function jobResources ({ deck: { jobs } }: { deck: Deck }, stream: StreamParts): Record<string, Resource> {
  const path = { name: JOB_NAME.describe('the name of a job') }

  return {
    '/jobs': {
      GET: operation({ name: 'listJobs',
        summary: 'Lists the jobs: what runs, what runs next, and how the last run ended', role: 'viewer',
        cli: 'clusterdeck jobs', answer: listOf(JOB), handle: () => ({ body: { items: jobs.list() } }) })
    },

    '/jobs/runs': {
      GET: operation({ name: 'listRuns', summary: 'Lists the runs of all jobs and commands, newest first',
        role: 'viewer', cli: 'clusterdeck jobs runs', query: PAGE_QUERY, problems: ['cursor-expired'],
        answer: pageOf(RUN), handle: ({ query }) => ({ body: jobs.runs(undefined, query) }) }),
      POST: operation({ name: 'runCommand',
        summary: 'Runs a command once, in the folder of the current release and with the variables of its workers',
        role: 'admin', cli: 'clusterdeck run -- npm run migrate', body: ORDER, status: 201, location: true,
        problems: ['stopping', 'upgrade-running', 'secrets-failed'], answer: RUN,
        handle ({ body: { command, process }, auth }) {
          const run = jobs.runCommand({ command, process, actor: auth.actor })
          return created(`/jobs/runs/${run.id}`, run)
        } })
    },

    '/jobs/place': {
      POST: operation({ name: 'openRunPlace',
        summary:
          'Returns the release, the folder and a socket with all variables of the workers, for a command that is run in a terminal',
        role: 'admin', problems: ['stopping', 'upgrade-running', 'secrets-failed'], answer: PLACE,
        handle: async () => ({ body: await jobs.place() }) })
    },

    '/jobs/runs/:id/ended': {
      POST: operation({ name: 'tellRunEnded', summary: 'Reports the exit of a command that was run in a terminal',
        role: 'admin', body: EXIT, problems: ['not-found', 'run-ended', 'not-possible'], answer: RUN,
        handle: ({ id, body }) => ({ body: jobs.tellEnd(id, body) }) })
    },

    '/jobs/runs/:id': {
      GET: operation({ name: 'getRun', summary: 'Returns one run with the end of its output', role: 'viewer',
        cli: 'clusterdeck jobs runs 812', problems: ['not-found'], answer: KEPT_RUN,
        handle: ({ id }) => ({ body: jobs.run(id) }) })
    },

    '/jobs/runs/:id/stream': {
      GET: operation({ name: 'followRun',
        summary: 'Streams the output of a run as it is written, as server-sent events',
        description:
          'It begins with the last 64 Ki characters, and ends with an event `end`. `Last-Event-ID` continues behind an event.',
        role: 'viewer',
        headers: { 'Last-Event-ID': z.string().optional().describe('the id of the last event that was read') },
        produces: [EVENT_STREAM], problems: ['not-found'],
        answer: { [EVENT_STREAM]: serverSentEvent(PART, ['message', 'dropped', 'end']) }, handle (call) {
        admitStream(call, stream)
        jobs.run(call.id)
        followRun(call)
        return undefined
      } })
    },

    '/jobs/runs/:id/end': {
      POST: operation({ name: 'endRun', form: {},
        summary: 'Ends a run: SIGTERM to it and all processes that it has started, SIGKILL 5 s later', role: 'operator',
        cli: 'clusterdeck jobs end 812', body: END, status: 202, problems: ['not-found', 'run-ended'], answer: RUN,
        handle: ({ id, body: { isForced = false }, auth }) => ({
          body: jobs.end(id, { isForced, actor: auth.actor })
        }) })
    },

    '/jobs/:name/runs': {
      GET: operation({ name: 'listRunsOfJob', summary: 'Lists the runs of one job, newest first', role: 'viewer',
        cli: 'clusterdeck jobs runs nightly', path, query: PAGE_QUERY, problems: ['not-found', 'cursor-expired'],
        answer: pageOf(RUN), handle: ({ params, query }) => ({ body: jobs.runs(params.name, query) }) }),
      POST: operation({ name: 'runJob', form: {}, summary: 'Runs a job now, also where it is paused',
        description: 'While it runs, 409; with `overlap: \'replace\'` the run is ended first.', role: 'operator',
        cli: 'clusterdeck jobs run nightly', path, status: 201, location: true,
        problems: ['not-found', 'job-running', 'stopping', 'upgrade-running', 'secrets-failed'], answer: RUN,
        async handle ({ params, auth }) {
          const run = await jobs.runNow(params.name, { actor: auth.actor })
          return created(`/jobs/runs/${run.id}`, run)
        } })
    },

    '/jobs/:name/acknowledge': {
      POST: operation({ name: 'acknowledgeJob', form: {},
        summary: 'Acknowledges that a job has failed: it needs no attention until it fails again', role: 'operator',
        cli: 'clusterdeck jobs acknowledge nightly', path, problems: ['not-found'], answer: JOB,
        handle: ({ params, auth }) => ({ body: jobs.acknowledge(params.name, auth.actor) }) })
    },

    '/jobs/:name/pause': {
      POST: operation({ name: 'pauseJob', form: {},
        summary: 'Pauses a job: its times pass until it is resumed, whatever is restarted meanwhile', role: 'operator',
        cli: 'clusterdeck jobs pause nightly', path, problems: ['not-found'], answer: JOB,
        handle: ({ params, auth }) => ({ body: jobs.pause(params.name, auth.actor) }) })
    },

    '/jobs/:name/resume': {
      POST: operation({ name: 'resumeJob', form: {}, summary: 'Resumes a paused job at its next time', role: 'operator',
        cli: 'clusterdeck jobs resume nightly', path, problems: ['not-found'], answer: JOB,
        handle: ({ params, auth }) => ({ body: jobs.resume(params.name, auth.actor) }) })
    }
  }

  function followRun (call: Call) {
    const { id, req } = call
    const { res, write, end, isOpen } = openStream(call, stream)
    let place = Number(/^\d{1,15}$/.exec(String(req.headers['last-event-id'] ?? ''))?.[0] ?? 0)
    const ticker = stream.timers.setInterval(tellNew, FOLLOW_EVERY_MS)
    res.once('close', () => stream.timers.clearInterval(ticker))
    const output = jobs.outputOf(id)
    tellNew()

    function tellNew () {
      if (!isOpen() || res.writableLength > MAX_UNSENT_BYTES) return
      // In this order: what it has written last is there once it has ended.
      const { output: _, ...run } = jobs.run(id)
      const { parts, place: next, missed } = output?.since(place) ?? { parts: [], place, missed: 0 }
      place = next
      if (missed > 0) write(`event: dropped\ndata: ${JSON.stringify({ chars: missed })}\n\n`)
      for (const part of parts) write(`data: ${JSON.stringify(part)}\n\n`)
      if (parts.length > 0) write(`id: ${place}\n\n`)
      if (run.state === 'running') return
      write(`event: end\ndata: ${JSON.stringify(run)}\n\n`)
      end()
    }
  }
}
