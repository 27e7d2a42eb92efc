import type { Operation } from './endpoint.ts'
import type { Mount } from './openapi.ts'

/** The schemas of an operation take more room than the rest of it. Sites that are alike share those of the first. */
export type SchemaPool = ReturnType<typeof createSchemaPool>

const SCHEMAS = ['path', 'headers', 'query', 'body', 'shownBody', 'answer', 'others'] as const

export function createSchemaPool () {
  /** By the name of the operation. */
  const known: Map<string, Partial<Operation>> = new Map()

  return {
    /** `mounts`: whose operations get the schemas of the first ones */
    share (mounts: readonly Mount[]) {
      for (const { groups } of mounts)
        for (const { resources } of Object.values(groups))
          for (const resource of Object.values(resources)) Object.values(resource).forEach(shareOne)
    }
  }

  function shareOne (operation: Operation) {
    const first = known.get(operation.name)
    if (first) Object.assign(operation, first)
    else known.set(operation.name,
        Object.fromEntries(SCHEMAS.filter((key) => operation[key] !== undefined).map((key) => [key, operation[key]])))
  }
}
