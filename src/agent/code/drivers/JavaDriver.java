class JavaDriver {}
