// Programs that are not Node's, unmodified, each on a deck of its own: `npm run programs`, or by their names or what they
// need: `npm run programs -- uvicorn go` Under load each is deployed and restarted, and loses a worker and its master.
import { tryEach } from '../apps/report.ts'
import { tryOut } from '../apps/trial.ts'
import { install } from './installation.ts'
import { PROGRAMS, type Program } from './programs.ts'

await tryEach(PROGRAMS, ({ name, needs }, word) => name === word || needs === word, async (program) => {
  const { folder, env, version } = await install(program)
  return { ...await tryOut(asApp(program, env), folder), version }
})

function asApp (
  { name, command, flags, env: own, expects, asks, listens = expects === undefined ? () => [] : undefined }: Program,
  env: Record<string, string>
): import('../apps/programs.ts').Program {
  return { name, packages: {}, start: flags ?? [], args: command, env: (place) => ({ ...env, ...own?.(place) }),
    asks: expects === undefined ? undefined : { expects, ...asks }, ...(listens && { listens }), keptMayFail: true }
}
