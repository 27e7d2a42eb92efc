import path from 'node:path'
import { TYPED_VARIABLE, typedNode } from '../run-on.js'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { describeShell } from '../system/shell-limits.ts'
import type { App } from './apps.ts'

/** what the host is asked to run */
export type AppOrder =
  & Partial<import('../config/orders.ts').AppOrder>
  & { cwd: string }

/** What is meant for a command alone; the token would be kept with the order. */
const OF_COMMANDS = /^CLUSTERDECK_(TOKEN|TOKEN_FILE|URL|TIMEOUT|KEPT|KEPT_FOLDER|HOST_DIR)$/
/** Of the terminal and the session of whoever calls: an app that comes back after a boot has neither. */
const OF_SESSION =
  /^(_|OLDPWD|SHLVL|WINDOWID|COLORTERM|VTE_VERSION|LS_COLORS|PS[0-4]|PROMPT_COMMAND|SSH_(CLIENT|CONNECTION|TTY)|XDG_SESSION_.*|TERM_.*|TMUX.*)$/
/** A name that tells of a secret. */
const LOOKS_SECRET = /(PASS(WORD|WD|PHRASE)?|SECRET|TOKEN|CREDENTIALS?|(API|ACCESS|PRIVATE)_?KEY)$/i
/** Each of several apps has its own. */
const OF_ONE_APP = /^CLUSTERDECK_(APP|NAME|CONFIG)$/

/** `flags`: of `start`, without those of the host */
export function orderOfStart ({ config, app, ...flags }: Record<string, unknown>,
  { env, cwd }: { env: Record<string, string | undefined>, cwd: string }): AppOrder
{
  return { ...(flags.name !== undefined && { name: String(flags.name) }),
    ...(config !== undefined && { config: path.resolve(cwd, String(config)) }),
    ...(app !== undefined && { app: String(app) }), cwd, flags: flags as AppOrder['flags'], env: variablesOf(env) }
}

/** `file`: the config file that has it */
export function orderOfApp ({ name, dependsOn }: App, file: string,
  { env, cwd }: { env: Record<string, string | undefined>, cwd: string }): AppOrder
{
  return { app: name, config: file, cwd, flags: {}, env: { ...variablesOf(env, OF_ONE_APP), PWD: cwd },
    dependsOn: [...dependsOn] }
}

/**
 * The list of a host keeps the variables of a shell on the disk, as the app needs them after a boot. Returns what to
 * tell of those that look like secrets; null: there are none.
 */
export function keptSecretsText (orders: readonly AppOrder[]): string | null {
  const names = [...new Set(orders.flatMap(({ env = {} }) => Object.keys(env)))].filter((name) =>
    LOOKS_SECRET.test(name)
  )
  if (names.length === 0) return null
  return `the host keeps the variables of this shell on its disk, among them ${
    names.join(', ')
  }; to keep a secret off it, unset it in the shell and set it by secrets or envFile of the config file: clusterdeck help secrets`
}

/** `others`: that are left out too */
export function variablesOf (env: Record<string, string | undefined>, others?: RegExp): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries({ [SHELL_VARIABLE]: describeShell(), ...env,
    [TYPED_VARIABLE]: typedNode(env) }))
    if (value !== undefined && !OF_COMMANDS.test(name) && !OF_SESSION.test(name) && !others?.test(name))
      variables[name] = value
  return variables
}
