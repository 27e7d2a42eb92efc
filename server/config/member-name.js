/** What a member of a fleet is called: a key of a bucket, a part of a subject and of a path. */
export const MEMBER_NAME = /^[A-Za-z\d][\w-]{0,99}$/

/** What a label of it is called. */
export const LABEL_NAME = /^[\w.-]{1,60}$/
