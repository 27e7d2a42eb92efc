// Real programs of the npm registry, unmodified, each on a deck of its own: `npm run apps`, or `npm run apps -- express
// koa` Under load each is deployed and restarted, and loses a worker and its master.
import { install } from './installation.ts'
import { PROGRAMS } from './programs.ts'
import { tryEach } from './report.ts'
import { tryOut } from './trial.ts'

await tryEach(PROGRAMS, ({ name }, word) => name === word, async (program) => {
  const { folder, version } = await install(program)
  return { ...await tryOut(program, folder), version }
})
