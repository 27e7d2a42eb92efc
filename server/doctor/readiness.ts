import { isFailing } from './answers.ts'
import { finding, inCode, type Check } from './finding.ts'
import { optionLine } from './option-line.ts'

/** whether a worker can get requests before it can answer them */
export const checkReadiness: Check = (facts) => {
  const { config: { ready }, files, running } = facts
  if (running && !running.isServer)
    return [finding('readiness', 'ok', 'The app does not listen, so it gets no requests')]
  if (ready.path !== undefined)
    return [finding('readiness', 'ok', `A worker accepts connections once ${ready.path} answers`)]
  if (ready.log !== undefined)
    return [finding('readiness', 'ok', `A worker is ready once it writes ${inCode(ready.log)}`)]
  if (ready.signal === 'message' || ready.signal === 'notify')
    return [finding('readiness', 'ok', 'A worker is ready when the app says so')]
  const [path] = files?.healthPaths ?? []
  const mend = path !== undefined
    ? optionLine(facts, { 'ready.path': path })
    : inCode('Give the app a path such as /health that answers 200 once it can work, and set ready.path to it')
  if (running?.serverErrors && running.serverErrors.early > 0 && running.serverErrors.later === 0 &&
    !running.answers.some(isFailing))
  {
    return [
      finding('readiness', 'warning',
        `New workers answered ${running.serverErrors.early} ${
          running.serverErrors.early === 1 ? 'request' : 'requests'
        } with an error, and only in their first half minute`,
        'A worker gets requests as soon as it listens, and this app listens before it can answer.', [mend])
    ]
  }
  const why =
    'A worker gets requests as soon as it listens; if it opens its connections only then, the first ones fail or wait.'
  return [
    finding('readiness', 'info', path === undefined
      ? 'No health path is asked before a worker gets requests'
      : `The code has a path ${path}, which is not asked before a worker gets requests`, why, [mend])
  ]
}
