/** What a client may ask, checked. */
export interface Question {
  prompt: string;
  stream: boolean;
}

/** An error that the client can mend; its status goes to the client as it is. */
export class BadQuestion extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const BODY_LIMIT_BYTES = 64 * 1024;

export async function readQuestion(request: Request): Promise<Question> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > BODY_LIMIT_BYTES) throw tooLarge(declared);
  const text = await request.text();
  if (text.length > BODY_LIMIT_BYTES) throw tooLarge(text.length);
  if (text === "") {
    throw new BadQuestion(400, 'The request has no body; send JSON such as {"prompt": "…"}.');
  }

  let question: Partial<Question>;
  try {
    question = JSON.parse(text);
  } catch (error) {
    throw new BadQuestion(400, `The body is not JSON: ${(error as Error).message}.`);
  }
  if (typeof question?.prompt !== "string" || question.prompt.trim() === "") {
    throw new BadQuestion(400, '"prompt" must be a text that is not empty.');
  }
  return { prompt: question.prompt, stream: question.stream === true };
}

function tooLarge(bytes: number): BadQuestion {
  return new BadQuestion(413, `The body is ${bytes} bytes; the limit is ${BODY_LIMIT_BYTES}.`);
}
