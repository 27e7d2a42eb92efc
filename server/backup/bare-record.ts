import { OPTIONS } from '../config/option-list.ts'
import { TYPED_VARIABLE } from '../run-on.js'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import type { Config } from '../config/config.ts'
import type { AppRecord } from '../host/records.ts'

/** What tells of a user, a place or a language, and of no secret. */
const PLAIN =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|PWD|LANG|LANGUAGE|LC_[A-Z]+|TZ|HOST|HOSTNAME|PORT|NODE_ENV|XDG_[A-Z_]+)$/
const OURS = new Set([SHELL_VARIABLE, TYPED_VARIABLE, 'CLUSTERDECK_APP', 'CLUSTERDECK_CONFIG', 'CLUSTERDECK_NODE',
  ...OPTIONS.filter(({ isSecret }) => !isSecret).map(({ env }) => env)])

/**
 * Leaves out of a record what may be a secret: the values of variables, and what the config file says, which is read
 * anew at the next start. Returns `variables`: the names of those that are not in the order any more.
 */
export function bareRecord ({ order, runs, ...record }: AppRecord): { record: AppRecord, variables: string[] } {
  const isKept = ([name]: [string, string]) => PLAIN.test(name) || OURS.has(name)
  const variables = Object.entries(order.env)
  return {
    record: { ...record, order: { ...order, env: Object.fromEntries(variables.filter(isKept)) },
      runs: runs &&
        { ...runs, order: null, variables: null, config: { values: placeOf(runs.config.values), origins: [] } } },
    variables: variables.filter((each) => !isKept(each)).map(([name]) => name).sort()
  }
}

/** `env`: of whoever restores. Returns `missing`: the names that are not there either. */
export function withVariables (record: AppRecord, names: readonly string[],
  env: Record<string, string | undefined>): { record: AppRecord, missing: string[] }
{
  const found = names.flatMap((name) => env[name] === undefined ? [] : [[name, env[name]]])
  return {
    record: { ...record, order: { ...record.order, env: { ...record.order.env, ...Object.fromEntries(found) } } },
    missing: names.filter((name) => env[name] === undefined)
  }
}

/** No more is read of a configuration that is about to be read anew. */
function placeOf ({ entry, cwd, workers }: Config) {
  return { entry, cwd, workers } as Config
}
