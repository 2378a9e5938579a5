import java.util.List;

/** A client library behind its generic call. Error replies are its exceptions. */
interface Client extends AutoCloseable {
    Object call(List<String> args) throws Exception;

    /** Sends the commands in one go. */
    List<Object> pipeline(List<List<String>> commands) throws Exception;

    /** Sends them between MULTI and EXEC. */
    List<Object> transaction(List<List<String>> commands) throws Exception;

    /** Whether the failure is how the library says that a password is wrong or missing. */
    boolean refused(Exception failure);

    @Override
    void close();
}
